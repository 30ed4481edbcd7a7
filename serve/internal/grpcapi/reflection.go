package grpcapi

import (
	"connectrpc.com/grpcreflect"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/loris-ml/loris/serve/internal/inference"
)

// addReflection lets clients without our .proto files find services and messages. It
// does not list itself: its descriptor is no business of who asks for ours.
func addReflection(r *Registrar) {
	health, err := protodesc.NewFile(healthFile(), protoregistry.GlobalFiles)
	if err != nil {
		panic(err) // the file is written below
	}
	reflector := grpcreflect.NewReflector(r, grpcreflect.WithDescriptorResolver(&resolver{health}))
	_, v1 := grpcreflect.NewHandlerV1(reflector, r.options...)
	_, alpha := grpcreflect.NewHandlerV1Alpha(reflector, r.options...)
	r.handle("grpc.reflection.v1.ServerReflection", "ServerReflectionInfo", inference.ScopeMetadata, v1)
	r.handle("grpc.reflection.v1alpha.ServerReflection", "ServerReflectionInfo", inference.ScopeMetadata, alpha)
}

// resolver finds descriptors among those of the program, and that of the health
// service, which is not registered there.
type resolver struct{ health protoreflect.FileDescriptor }

func (r *resolver) FindFileByPath(path string) (protoreflect.FileDescriptor, error) {
	if path == r.health.Path() {
		return r.health, nil
	}
	return protoregistry.GlobalFiles.FindFileByPath(path)
}

func (r *resolver) FindDescriptorByName(name protoreflect.FullName) (protoreflect.Descriptor, error) {
	if name.Parent() == r.health.Package() || name.Parent().Parent() == r.health.Package() {
		if d := r.health.Services().ByName(name.Name()); d != nil {
			return d, nil
		}
		if d := r.health.Messages().ByName(name.Name()); d != nil {
			return d, nil
		}
		if s := r.health.Services().ByName(name.Parent().Name()); s != nil {
			if d := s.Methods().ByName(name.Name()); d != nil {
				return d, nil
			}
		}
	}
	return protoregistry.GlobalFiles.FindDescriptorByName(name)
}

// healthFile describes the health service by the names that its clients know.
func healthFile() *descriptorpb.FileDescriptorProto {
	field := func(name string, t descriptorpb.FieldDescriptorProto_Type, of string) *descriptorpb.FieldDescriptorProto {
		f := &descriptorpb.FieldDescriptorProto{
			Name: proto.String(name), Number: proto.Int32(1), Type: t.Enum(),
			Label: descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum(),
		}
		if of != "" {
			f.TypeName = proto.String(of)
		}
		return f
	}
	states := &descriptorpb.EnumDescriptorProto{Name: proto.String("ServingStatus")}
	for i, name := range []string{"UNKNOWN", "SERVING", "NOT_SERVING", "SERVICE_UNKNOWN"} {
		states.Value = append(states.Value, &descriptorpb.EnumValueDescriptorProto{Name: proto.String(name), Number: proto.Int32(int32(i))})
	}
	method := func(name string, streams bool) *descriptorpb.MethodDescriptorProto {
		return &descriptorpb.MethodDescriptorProto{
			Name: proto.String(name), InputType: proto.String(".grpc.health.v1.HealthCheckRequest"),
			OutputType: proto.String(".grpc.health.v1.HealthCheckResponse"), ServerStreaming: proto.Bool(streams),
		}
	}
	return &descriptorpb.FileDescriptorProto{
		Name: proto.String("grpc/health/v1/health.proto"), Package: proto.String("grpc.health.v1"), Syntax: proto.String("proto3"),
		MessageType: []*descriptorpb.DescriptorProto{
			{Name: proto.String("HealthCheckRequest"), Field: []*descriptorpb.FieldDescriptorProto{
				field("service", descriptorpb.FieldDescriptorProto_TYPE_STRING, ""),
			}},
			{Name: proto.String("HealthCheckResponse"), EnumType: []*descriptorpb.EnumDescriptorProto{states}, Field: []*descriptorpb.FieldDescriptorProto{
				field("status", descriptorpb.FieldDescriptorProto_TYPE_ENUM, ".grpc.health.v1.HealthCheckResponse.ServingStatus"),
			}},
		},
		Service: []*descriptorpb.ServiceDescriptorProto{{
			Name: proto.String("Health"), Method: []*descriptorpb.MethodDescriptorProto{method("Check", false), method("Watch", true)},
		}},
	}
}
