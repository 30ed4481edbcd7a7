package ir

import (
	"reflect"
	"testing"
)

// TestSchemaString reads every row's schema back.
func TestSchemaString(t *testing.T) {
	for _, sp := range Ops() {
		got, err := parseSchema(sp.Schema.String())
		if err != nil {
			t.Errorf("%s: %v", sp.Name, err)
			continue
		}
		if !reflect.DeepEqual(got, sp.Schema) {
			t.Errorf("%s: %v is read back as %+v, want %+v", sp.Name, sp.Schema, got, sp.Schema)
		}
	}
}

func TestSchemaStringIsATens(t *testing.T) {
	for _, text := range []string{
		"sum(Tensor self, int[]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
		"split(Tensor self, int split_size, int dim=0) -> Tensor[]",
		"topk(Tensor self, int k, int dim=-1, bool largest=True) -> (Tensor values, Tensor indices)",
		"gelu(Tensor self, *, str approximate='none') -> Tensor",
		"pool(Tensor self, int[] stride=[1, 2], float eps=1e-05) -> Tensor",
	} {
		s, err := parseSchema(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := s.String(); got != text {
			t.Errorf("got  %s\nwant %s", got, text)
		}
	}
}
