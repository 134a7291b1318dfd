// gRPC's test service on hyper, the HTTP/2 that tonic stands on: interop PORT
use hyper::body::Bytes;
use hyper::header::{HeaderMap, HeaderValue};
use hyper::service::{make_service_fn, service_fn};
use hyper::{Body, Request, Response, Server};
use std::convert::Infallible;
use std::time::Duration;

const SERVICE: &str = "/grpc.testing.TestService/";
const INITIAL: &str = "x-grpc-test-echo-initial";
const TRAILING: &str = "x-grpc-test-echo-trailing-bin";
const INTERNAL: u64 = 13;
const UNIMPLEMENTED: u64 = 12;

/// A field of a protobuf message: a number, or bytes.
enum Value<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

fn number(bytes: &mut &[u8]) -> Option<u64> {
    let (mut value, mut shift) = (0u64, 0);
    loop {
        let (first, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(first & 0x7f) << shift;
        if first & 0x80 == 0 {
            return Some(value);
        }
        shift += 7;
    }
}

/// The fields of a message that has numbers and bytes alone, up to what cannot be read.
fn fields(mut bytes: &[u8]) -> Vec<(u64, Value<'_>)> {
    let mut found = Vec::new();
    while let Some(tag) = number(&mut bytes) {
        let Some(value) = number(&mut bytes) else { break };
        if tag & 7 == 0 {
            found.push((tag >> 3, Value::Number(value)));
        } else if value as usize <= bytes.len() {
            let (own, rest) = bytes.split_at(value as usize);
            found.push((tag >> 3, Value::Bytes(own)));
            bytes = rest;
        }
    }
    found
}

fn put_number(value: u64, into: &mut Vec<u8>) {
    let mut left = value;
    while left >= 0x80 {
        into.push(left as u8 | 0x80);
        left >>= 7;
    }
    into.push(left as u8);
}

/// A `payload` of so many zero bytes, as the answers' field 1.
fn zeros(size: u64) -> Vec<u8> {
    let mut body = vec![0x12];
    put_number(size, &mut body);
    body.resize(body.len() + size as usize, 0);
    let mut message = vec![0x0a];
    put_number(body.len() as u64, &mut message);
    message.extend(body);
    message
}

struct Status(u64, String);

async fn unary(body: &[u8]) -> Result<Vec<u8>, Status> {
    let mut size = 0;
    for field in fields(body) {
        match field {
            (2, Value::Number(wanted)) => size = wanted,
            (7, Value::Bytes(status)) => {
                let (mut code, mut text) = (0, String::new());
                for part in fields(status) {
                    match part {
                        (1, Value::Number(value)) => code = value,
                        (2, Value::Bytes(value)) => text = String::from_utf8_lossy(value).into(),
                        _ => {}
                    }
                }
                if code != 0 {
                    return Err(Status(code, text));
                }
            }
            _ => {}
        }
    }
    Ok(zeros(size))
}

async fn output(body: &[u8]) -> Result<Vec<u8>, Status> {
    let (mut size, mut interval) = (0, 0);
    for field in fields(body) {
        if let (2, Value::Bytes(parameters)) = field {
            for part in fields(parameters) {
                match part {
                    (1, Value::Number(value)) => size = value,
                    (2, Value::Number(value)) => interval = value,
                    _ => {}
                }
            }
        }
    }
    tokio::time::sleep(Duration::from_micros(interval)).await;
    Ok(zeros(size))
}

/// One message without its prefix.
async fn message(body: Body) -> Result<Bytes, Status> {
    let whole = hyper::body::to_bytes(body).await.map_err(|error| Status(INTERNAL, error.to_string()))?;
    if whole.len() < 5 || whole[0] != 0 || whole[1..5] != ((whole.len() - 5) as u32).to_be_bytes() {
        return Err(Status(INTERNAL, format!("{} bytes are not one message", whole.len())));
    }
    Ok(whole.slice(5..))
}

async fn answer(path: String, body: Body) -> Result<Vec<u8>, Status> {
    let body = message(body).await?;
    match path.strip_prefix(SERVICE) {
        Some("EmptyCall") => Ok(Vec::new()),
        Some("UnaryCall") => unary(&body).await,
        Some("StreamingOutputCall") => output(&body).await,
        _ => Err(Status(UNIMPLEMENTED, format!("{path} is not here"))),
    }
}

fn percent_encoded(text: &str) -> String {
    text.bytes()
        .map(|byte| match byte {
            b' '..=b'~' if byte != b'%' => (byte as char).to_string(),
            _ => format!("%{byte:02X}"),
        })
        .collect()
}

async fn serve(request: Request<Body>) -> Result<Response<Body>, Infallible> {
    let (head, body) = request.into_parts();
    let mut trailers = HeaderMap::new();
    let mut response = Response::builder().header("content-type", "application/grpc");
    if let Some(value) = head.headers.get(INITIAL) {
        response = response.header(INITIAL, value);
    }
    if let Some(value) = head.headers.get(TRAILING) {
        trailers.insert(TRAILING, value.clone());
    }
    let Status(code, text) = match answer(head.uri.path().to_string(), body).await {
        Ok(message) => {
            let (mut sender, body) = Body::channel();
            tokio::spawn(async move {
                let mut framed = vec![0];
                framed.extend((message.len() as u32).to_be_bytes());
                framed.extend(message);
                trailers.insert("grpc-status", HeaderValue::from(0));
                if sender.send_data(framed.into()).await.is_ok() {
                    let _ = sender.send_trailers(trailers).await;
                }
            });
            return Ok(response.body(body).unwrap());
        }
        Err(status) => status,
    };
    // Trailers alone: the answer's only block of headers.
    response = response.header("grpc-status", code).header("grpc-message", percent_encoded(&text));
    for (name, value) in &trailers {
        response = response.header(name, value);
    }
    Ok(response.body(Body::empty()).unwrap())
}

#[tokio::main]
async fn main() {
    let port = std::env::args().nth(1).and_then(|word| word.parse().ok()).expect("a port");
    let made = make_service_fn(|_| async { Ok::<_, Infallible>(service_fn(serve)) });
    Server::bind(&([127, 0, 0, 1], port).into()).http2_only(true).serve(made).await.unwrap();
}
