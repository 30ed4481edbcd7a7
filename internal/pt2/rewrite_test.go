package pt2

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/loris-ml/loris/internal/ir"
)

// weighted is a package whose constants are w (u8[3]), t (u8[2,3] stored by
// columns) and a folded one, in 128 bytes of weights.
func weighted(kind WeightsKind, packed bool) []file {
	const source = `
inputs_info_[0].name = "x";
constants_info_[0].name = "w";
constants_info_[0].dtype = cached_torch_dtype_uint8;
constants_info_[0].data_size = 64;
constants_info_[0].type = static_cast<int32_t>(torch::aot_inductor::ConstantType::Parameter);
constants_info_[0].shape = {3};
constants_info_[0].stride = {1};
constants_info_[0].original_fqn = "layer.w";
constants_info_[1].name = "f";
constants_info_[1].dtype = cached_torch_dtype_uint8;
constants_info_[1].from_folded = true;
constants_info_[1].data_size = 64;
constants_info_[2].name = "t";
constants_info_[2].dtype = cached_torch_dtype_uint8;
constants_info_[2].offset = 1;
constants_info_[2].data_size = 64;
constants_info_[2].shape = {2, 3};
constants_info_[2].stride = {1, 2};
constants_info_[3].name = "seen";
constants_info_[3].dtype = cached_torch_dtype_uint8;
constants_info_[3].type = static_cast<int32_t>(torch::aot_inductor::ConstantType::Buffer);
constants_info_[3].data_size = 0;
constants_info_[3].shape = {0};
constants_info_[3].stride = {1};
`
	o := tiny{defined: []string{"AOTInductorModelContainerRun", "_binary_constants_bin_start", "_binary_constants_bin_end"}}
	files := []file{{name: "m/archive_format", data: "pt2"}, {name: "m/data/aotinductor/model/x.cpp", data: source}}
	switch kind {
	case WeightsInside:
		o.weights = bytes.Repeat([]byte{9}, 128)
	case WeightsAppended:
		o.weights = append(le(uint64(136)), "magic123"...)
		n := len(o.build())
		o.tail = append(make([]byte, (weightsAlign-n%weightsAlign)%weightsAlign), bytes.Repeat([]byte{9}, 128)...)
		o.tail = append(o.tail, "magic123"...)
	case WeightsOutside:
		o.weights = le(uint64(128))
		files = append(files, file{name: "m/data/aotinductor/model/x_weights.blob", data: strings.Repeat("\x09", 128), packed: packed})
	}
	return append(files, file{name: "m/data/aotinductor/model/x.so", data: string(o.build()), packed: packed}, file{name: "m/z", data: "rest"})
}

var newValues = map[string]Value{
	"layer.w": {ir.MakeShape(ir.U8, 3), []byte{1, 2, 3}},
	"t":       {ir.MakeShape(ir.U8, 2, 3), []byte{11, 12, 13, 21, 22, 23}},
}

// wantWeights is what newValues make of the weights.
func wantWeights() []byte {
	b := bytes.Repeat([]byte{9}, 128)
	copy(b, []byte{1, 2, 3})
	copy(b[65:], []byte{11, 21, 12, 22, 13, 23})
	return b
}

func weightsOf(t *testing.T, m *Model) []byte {
	t.Helper()
	lib, err := m.Library()
	if err != nil {
		t.Fatal(err)
	}
	name, off := m.LibraryFile, lib.Weights.Offset
	if lib.Weights.Kind == WeightsOutside {
		name, off = m.BlobFile, 0
	}
	s, err := m.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	b := make([]byte, lib.Weights.Size)
	if _, err := s.ReadAt(b, off); err != nil && err != io.EOF {
		t.Fatal(err)
	}
	return b
}

func TestRewrite(t *testing.T) {
	for _, kind := range []WeightsKind{WeightsInside, WeightsAppended, WeightsOutside} {
		for _, packed := range []bool{false, true} {
			var out bytes.Buffer
			m := mustOpen(t, weighted(kind, packed)).Models()[0]
			if err := m.Rewrite(&out, newValues, false); err != nil {
				t.Fatalf("%v: %v", kind, err)
			}
			p, err := openBytes(out.Bytes())
			if err != nil {
				t.Fatalf("%v: %v", kind, err)
			}
			if err := p.Verify(); err != nil {
				t.Errorf("%v: %v", kind, err)
			}
			if got := weightsOf(t, p.Models()[0]); !bytes.Equal(got, wantWeights()) {
				t.Errorf("%v, packed %v: weights\n%v, want\n%v", kind, packed, got, wantWeights())
			}
			if rest, err := p.members["z"].read(10); err != nil || string(rest) != "rest" || len(p.Files()) != len(m.p.Files()) {
				t.Errorf("%v: the rest: %q, %v", kind, rest, err)
			}
		}
	}
}

// A stored library stays aligned, so that it can be mapped.
func TestRewriteAligns(t *testing.T) {
	var out bytes.Buffer
	if err := mustOpen(t, weighted(WeightsInside, false)).Models()[0].Rewrite(&out, newValues, false); err != nil {
		t.Fatal(err)
	}
	p, err := openBytes(out.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	m := p.Models()[0]
	s, err := m.Open(m.LibraryFile)
	if err != nil || s.Offset%memberAlign != 0 {
		t.Errorf("the library lies at %d, %v", s.Offset, err)
	}
}

func TestRewriteBareLibrary(t *testing.T) {
	dir := t.TempDir()
	for _, f := range weighted(WeightsInside, false) {
		write(t, dir, filepath.Base(f.name), f.data)
	}
	p, err := Open(filepath.Join(dir, "x.so"))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	var out bytes.Buffer
	if err := p.Models()[0].Rewrite(&out, map[string]Value{"w": newValues["layer.w"]}, true); err != nil {
		t.Fatal(err)
	}
	old, err := os.ReadFile(filepath.Join(dir, "x.so"))
	if err != nil {
		t.Fatal(err)
	}
	at := library(t, old).Weights.Offset
	want := slices.Clone(old)
	copy(want[at:], []byte{1, 2, 3})
	if !bytes.Equal(out.Bytes(), want) {
		t.Error("the library differs in more than the weight")
	}
}

func TestRewriteRefuses(t *testing.T) {
	none := weighted(WeightsInside, false)
	short := weighted(WeightsInside, false)
	short[1].data = strings.Replace(short[1].data, "data_size = 64", "data_size = 640", 1)
	opaque := weighted(WeightsInside, false)
	opaque[1].data += "constants_info_[0].opaque_metadata = {1L};\n"
	far := weighted(WeightsInside, false)
	far[1].data = strings.Replace(far[1].data, "{1, 2}", "{1, 200}", 1)
	u8 := func(dims ...int) Value { s := ir.MakeShape(ir.U8, dims...); return Value{s, make([]byte, s.Bytes())} }
	for _, tc := range []struct {
		name, want string
		files      []file
		values     map[string]Value
		partial    bool
	}{
		{"unknown", `no constant "v"`, none, map[string]Value{"v": u8(3)}, true},
		{"missing", `constant "t" has no new value`, none, map[string]Value{"w": u8(3)}, false},
		{"shape", "is u8[3], the new value u8[4]", none, map[string]Value{"w": u8(4)}, true},
		{"dtype", "is u8[3], the new value i8[3]", none, map[string]Value{"w": {ir.MakeShape(ir.I8, 3), make([]byte, 3)}}, true},
		{"folded", "computed from others", none, map[string]Value{"f": u8(3)}, true},
		{"sizes that don't fit", "don't add up", short, newValues, true},
		{"packed", "only oneDNN", opaque, newValues, true},
		{"strides that leave the storage", "does not fit", far, newValues, true},
		{"no weights", "no weights in its package", weighted(WeightsNone, false), newValues, true},
	} {
		err := mustOpen(t, tc.files).Models()[0].Rewrite(io.Discard, tc.values, tc.partial)
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v", tc.name, err)
		}
	}
}

// A damaged file of weights is not written again under a checksum that fits.
func TestRewriteRefusesDamage(t *testing.T) {
	for _, kind := range []WeightsKind{WeightsInside, WeightsAppended, WeightsOutside} {
		archive := archiveOf(t, weighted(kind, false))
		m := mustOpen(t, weighted(kind, false)).Models()[0]
		file, base := m.LibraryFile, int64(0)
		if lib, err := m.Library(); err != nil {
			t.Fatal(err)
		} else if kind == WeightsOutside {
			file = m.BlobFile
		} else {
			base = lib.Weights.Offset
		}
		at, err := m.files[file].place()
		if err != nil {
			t.Fatal(err)
		}
		archive[at.Offset+base+1] ^= 1
		p, err := openBytes(archive)
		if err != nil {
			t.Fatal(err)
		}
		var fe *FormatError
		if err := p.Models()[0].Rewrite(io.Discard, newValues, true); !errors.As(err, &fe) || fe.Path == "" {
			t.Errorf("%v: %v", kind, err)
		}
	}
}
