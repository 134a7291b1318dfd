// gRPC's test service on @grpc/grpc-js: node grpc_js.js PORT INTEROP.PROTO
const grpc = require("@grpc/grpc-js");
const loader = require("@grpc/proto-loader");

const INITIAL = "x-grpc-test-echo-initial";
const TRAILING = "x-grpc-test-echo-trailing-bin";

function echoed(call) {
  const initial = new grpc.Metadata(), trailing = new grpc.Metadata();
  call.metadata.get(INITIAL).forEach((value) => initial.add(INITIAL, value));
  call.metadata.get(TRAILING).forEach((value) => trailing.add(TRAILING, value));
  call.sendMetadata(initial);
  return trailing;
}

const service = {
  EmptyCall: (call, done) => done(null, {}, echoed(call)),
  UnaryCall: (call, done) => {
    const trailing = echoed(call);
    const { response_status: status, response_size: size } = call.request;
    if (status && status.code) {
      done({ code: status.code, details: status.message, metadata: trailing });
    } else {
      done(null, { payload: { body: Buffer.alloc(size) } }, trailing);
    }
  },
  StreamingOutputCall: (call) => {
    const [part] = call.request.response_parameters;
    setTimeout(() => {
      call.write({ payload: { body: Buffer.alloc(part.size) } });
      call.end();
    }, part.interval_us / 1000);
  },
};

const [port, proto] = process.argv.slice(2);
const definition = loader.loadSync(proto, { keepCase: true, defaults: true });
const methods = grpc.loadPackageDefinition(definition).grpc.testing.TestService.service;
const server = new grpc.Server();
server.addService(methods, service);
server.bindAsync(`127.0.0.1:${port}`, grpc.ServerCredentials.createInsecure(), (error) => {
  if (error) throw error;
});
