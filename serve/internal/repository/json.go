package repository

import (
	"encoding/json"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/reflect/protoreflect"

	pb "github.com/loris-ml/loris/serve/internal/pb/inference"
)

// configJSON writes a configuration with the names of its fields, all of them, and 64-bit
// integers as numbers, which protobuf's JSON has as strings.
func configJSON(c *pb.ModelConfig) ([]byte, error) {
	text, err := protojson.MarshalOptions{UseProtoNames: true, EmitUnpopulated: true}.Marshal(c)
	if err != nil {
		return nil, err
	}
	var tree map[string]any
	if err := json.Unmarshal(text, &tree); err != nil {
		return nil, err
	}
	numbers(tree, c.ProtoReflect().Descriptor())
	return json.Marshal(tree)
}

// numbers turns the strings that are 64-bit integers into numbers.
func numbers(tree map[string]any, d protoreflect.MessageDescriptor) {
	for i := range d.Fields().Len() {
		f := d.Fields().Get(i)
		value, ok := tree[string(f.Name())]
		if !ok {
			continue
		}
		if f.IsMap() {
			if m := f.MapValue().Message(); m != nil {
				for _, v := range value.(map[string]any) {
					numbers(v.(map[string]any), m)
				}
			}
			continue
		}
		switch v := value.(type) {
		case []any:
			for j := range v {
				v[j] = number(v[j], f)
			}
		default:
			tree[string(f.Name())] = number(v, f)
		}
	}
}

func number(v any, f protoreflect.FieldDescriptor) any {
	switch f.Kind() {
	case protoreflect.Int64Kind, protoreflect.Uint64Kind:
		if s, ok := v.(string); ok {
			return json.Number(s)
		}
	case protoreflect.MessageKind:
		if m, ok := v.(map[string]any); ok {
			numbers(m, f.Message())
		}
	}
	return v
}
