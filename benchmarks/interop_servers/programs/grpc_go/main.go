// gRPC's test service on grpc-go: grpc_go PORT
package main

import (
	"context"
	"log"
	"net"
	"os"
	"time"

	"github.com/golang/protobuf/proto"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

const (
	initial  = "x-grpc-test-echo-initial"
	trailing = "x-grpc-test-echo-trailing-bin"
)

// Messages as interop.proto has them: their tags say all that protobuf needs.

type Empty struct{}

type Payload struct {
	Body []byte `protobuf:"bytes,2,opt,name=body,proto3"`
}

type EchoStatus struct {
	Code    int32  `protobuf:"varint,1,opt,name=code,proto3"`
	Message string `protobuf:"bytes,2,opt,name=message,proto3"`
}

type SimpleRequest struct {
	ResponseSize   int32       `protobuf:"varint,2,opt,name=response_size,proto3"`
	Payload        *Payload    `protobuf:"bytes,3,opt,name=payload,proto3"`
	ResponseStatus *EchoStatus `protobuf:"bytes,7,opt,name=response_status,proto3"`
}

type SimpleResponse struct {
	Payload *Payload `protobuf:"bytes,1,opt,name=payload,proto3"`
}

type ResponseParameters struct {
	Size       int32 `protobuf:"varint,1,opt,name=size,proto3"`
	IntervalUs int32 `protobuf:"varint,2,opt,name=interval_us,proto3"`
}

type StreamingOutputCallRequest struct {
	ResponseParameters []*ResponseParameters `protobuf:"bytes,2,rep,name=response_parameters,proto3"`
}

func (m *Empty) Reset()                      { *m = Empty{} }
func (m *Payload) Reset()                    { *m = Payload{} }
func (m *EchoStatus) Reset()                 { *m = EchoStatus{} }
func (m *SimpleRequest) Reset()              { *m = SimpleRequest{} }
func (m *SimpleResponse) Reset()             { *m = SimpleResponse{} }
func (m *ResponseParameters) Reset()         { *m = ResponseParameters{} }
func (m *StreamingOutputCallRequest) Reset() { *m = StreamingOutputCallRequest{} }

func (m *Empty) String() string                      { return proto.CompactTextString(m) }
func (m *Payload) String() string                    { return proto.CompactTextString(m) }
func (m *EchoStatus) String() string                 { return proto.CompactTextString(m) }
func (m *SimpleRequest) String() string              { return proto.CompactTextString(m) }
func (m *SimpleResponse) String() string             { return proto.CompactTextString(m) }
func (m *ResponseParameters) String() string         { return proto.CompactTextString(m) }
func (m *StreamingOutputCallRequest) String() string { return proto.CompactTextString(m) }

func (*Empty) ProtoMessage()                      {}
func (*Payload) ProtoMessage()                    {}
func (*EchoStatus) ProtoMessage()                 {}
func (*SimpleRequest) ProtoMessage()              {}
func (*SimpleResponse) ProtoMessage()             {}
func (*ResponseParameters) ProtoMessage()         {}
func (*StreamingOutputCallRequest) ProtoMessage() {}

func echo(ctx context.Context) {
	came, _ := metadata.FromIncomingContext(ctx)
	if values := came.Get(initial); len(values) > 0 {
		grpc.SetHeader(ctx, metadata.Pairs(initial, values[0]))
	}
	if values := came.Get(trailing); len(values) > 0 {
		grpc.SetTrailer(ctx, metadata.Pairs(trailing, values[0]))
	}
}

func zeros(size int32) *SimpleResponse {
	return &SimpleResponse{Payload: &Payload{Body: make([]byte, size)}}
}

func emptyCall(_ interface{}, ctx context.Context, read func(interface{}) error, _ grpc.UnaryServerInterceptor) (interface{}, error) {
	asked := new(Empty)
	if err := read(asked); err != nil {
		return nil, err
	}
	echo(ctx)
	return new(Empty), nil
}

func unaryCall(_ interface{}, ctx context.Context, read func(interface{}) error, _ grpc.UnaryServerInterceptor) (interface{}, error) {
	asked := new(SimpleRequest)
	if err := read(asked); err != nil {
		return nil, err
	}
	echo(ctx)
	if wanted := asked.ResponseStatus; wanted != nil && wanted.Code != 0 {
		return nil, status.Error(codes.Code(wanted.Code), wanted.Message)
	}
	return zeros(asked.ResponseSize), nil
}

func streamingOutputCall(_ interface{}, stream grpc.ServerStream) error {
	asked := new(StreamingOutputCallRequest)
	if err := stream.RecvMsg(asked); err != nil {
		return err
	}
	for _, part := range asked.ResponseParameters {
		time.Sleep(time.Duration(part.IntervalUs) * time.Microsecond)
		if err := stream.SendMsg(zeros(part.Size)); err != nil {
			return err
		}
	}
	return nil
}

func main() {
	listener, err := net.Listen("tcp", "127.0.0.1:"+os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	server := grpc.NewServer()
	server.RegisterService(&grpc.ServiceDesc{
		ServiceName: "grpc.testing.TestService",
		HandlerType: (*interface{})(nil),
		Methods: []grpc.MethodDesc{
			{MethodName: "EmptyCall", Handler: emptyCall},
			{MethodName: "UnaryCall", Handler: unaryCall},
		},
		Streams: []grpc.StreamDesc{
			{StreamName: "StreamingOutputCall", Handler: streamingOutputCall, ServerStreams: true},
		},
	}, struct{}{})
	log.Fatal(server.Serve(listener))
}
