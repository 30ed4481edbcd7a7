package container_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/loris-ml/loris/aoti/container"
	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/internal/ir"
)

func TestUpdateErrors(t *testing.T) {
	m := &maker{}
	k := info()
	k = append(k, k[cW], k[cW])
	k[6].Name, k[6].OriginalName = "tied_0", "tied"
	k[7].Name, k[7].OriginalName = "tied_1", "tied"
	m.constants = k
	c := m.pool(t, container.Config{Instances: 1})
	l := new(ledger)
	good := l.filled(wide, 2)
	all := func(with map[string]backend.Buffer) map[string]backend.Buffer {
		out := map[string]backend.Buffer{"fc_weight": good, "fc_bias": good, "tied_0": good, "tied_1": good}
		for name, v := range with {
			if out[name] = v; v == nil {
				delete(out, name)
			}
		}
		return out
	}
	ints := l.buffer(ir.MakeShape(ir.I32, wide), good.data)
	flat := l.buffer(ir.MakeShape(ir.F32, wide/2, 2), good.data)
	type values map[string]backend.Buffer
	for _, tt := range []struct {
		name    string
		values  values
		partial bool
		problem error
		says    string
	}{
		{"missing", all(values{"fc_bias": nil}), false, container.ErrMissing, `"fc_bias"`},
		{"two missing", all(values{"fc_bias": nil, "fc_weight": nil}), false, container.ErrMissing, `"fc_weight"`},
		{"nil", values{"fc_bias": nil}, true, container.ErrMissing, `"fc_bias"`},
		{"unknown", all(values{"fc_biased": good}), false, container.ErrUnknown, `"fc_biased"`},
		{"ambiguous", all(values{"tied": good}), false, container.ErrAmbiguous, `"tied"`},
		{"by both names", all(values{"fc.bias": good}), false, container.ErrTwice, `"fc_bias"`},
		{"folded", all(values{"_FOLDED_CONST_sum": good}), false, container.ErrFolded, "_FOLDED"},
		{"dtype", all(values{"fc_bias": ints}), false, ir.ErrDType, "i32[256], the model has f32[256]"},
		{"shape", all(values{"fc_bias": flat}), false, ir.ErrShape, "f32[128,2], the model has f32[256]"},
		{"size", values{"fc_bias": l.filled(wide+1, 1)}, true, ir.ErrShape, "f32[257]"},
	} {
		for _, which := range []container.Which{container.Active, container.Inactive} {
			var opts []container.UpdateOption
			if tt.partial {
				opts = append(opts, container.Partial())
			}
			err := c.Update(ctx, tt.values, which, opts...)
			var ce *container.ConstantError
			if !errors.Is(err, tt.problem) || !errors.As(err, &ce) || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("%s: %v", tt.name, err)
			}
		}
	}
	if err := c.Swap(ctx); !errors.Is(err, container.ErrNoInactive) {
		t.Errorf("an update that failed left an inactive set: %v", err)
	}
	if s := mustRun(t, c); s.w != 1 {
		t.Errorf("an update that failed changed the active set: %v", s)
	}
	if err := c.Update(ctx, all(nil), container.Inactive); err != nil {
		t.Errorf("by unambiguous names: %v", err)
	}
}

// A full update may leave out what 2.15 exempts: tensors without a name of
// their own, buffers, empty parameters; and what folding computes.
func TestFullUpdateExemptions(t *testing.T) {
	for _, which := range []container.Which{container.Active, container.Inactive} {
		m := &maker{}
		c := m.pool(t, container.Config{Instances: 1})
		one := m.filled(1, 5)
		if err := c.Update(ctx, map[string]backend.Buffer{"_tensor_constant0": one}, container.Active, container.Partial()); err != nil {
			t.Fatal(err)
		}
		one.Release()
		if err := m.update(c, 2, which); err != nil {
			t.Fatal(err)
		}
		got, err := c.ExtractConstants(ctx, which, false)
		if err != nil {
			t.Fatal(err)
		}
		if first(got["fc.weight"]) != 2 || first(got["_tensor_constant0"]) != 5 || first(got["bn.running"]) != 1 || len(got) != 4 {
			t.Errorf("%v: %v", which, got)
		}
		release(got)
	}
}

func TestPartialUpdateCarriesOver(t *testing.T) {
	m := &maker{}
	c := m.pool(t, container.Config{Instances: 1})
	bias := func(v float32, which container.Which) {
		t.Helper()
		b := m.filled(wide, v)
		defer b.Release()
		if err := c.Update(ctx, map[string]backend.Buffer{"fc_bias": b}, which, container.Partial()); err != nil {
			t.Fatal(err)
		}
	}
	bias(2, container.Active) // w=1 b=2
	if s := mustRun(t, c); s.w != 1 || s.b != 2 || s.sum != 3 {
		t.Errorf("after a partial update of the active set: %+v", s)
	}
	bias(3, container.Inactive) // carried over from the active set
	if s := mustRun(t, c); s.b != 2 {
		t.Errorf("an inactive update is seen: %+v", s)
	}
	weight := m.filled(wide, 7)
	if err := c.Update(ctx, map[string]backend.Buffer{"fc.weight": weight}, container.Inactive, container.Partial()); err != nil {
		t.Fatal(err)
	}
	weight.Release()
	if err := c.Swap(ctx); err != nil {
		t.Fatal(err)
	}
	if s := mustRun(t, c); s.w != 7 || s.b != 3 || s.sum != 10 {
		t.Errorf("after two partial updates of the inactive set: %+v", s)
	}
}

// User-managed values are used where they are, and kept until the set goes.
func TestUserManaged(t *testing.T) {
	m := &maker{}
	c := m.pool(t, container.Config{Instances: 1})
	if err := c.FreeInactive(ctx); err != nil {
		t.Fatal(err)
	}
	values := m.version(4)
	before := m.live.Load()
	if err := c.Update(ctx, values, container.Inactive, container.UserManaged()); err != nil {
		t.Fatal(err)
	}
	if n := m.live.Load(); n != before {
		t.Errorf("%d bytes were copied", n-before)
	}
	w := values["fc.weight"].(*buffer)
	release(values)
	if w.refs.Load() != 1 {
		t.Errorf("the set has %d references to the weight", w.refs.Load())
	}
	if err := c.Swap(ctx); err != nil {
		t.Fatal(err)
	}
	if s := mustRun(t, c); s.w != 4 {
		t.Errorf("%+v", s)
	}
	if err := m.update(c, 5, container.Active); err != nil {
		t.Fatal(err)
	}
	if w.refs.Load() != 0 {
		t.Error("the set is gone and the weight is not")
	}
}

func TestExtractConstants(t *testing.T) {
	m := &maker{}
	c := m.pool(t, container.Config{Instances: 1})
	if _, err := c.ExtractConstants(ctx, container.Inactive, true); !errors.Is(err, container.ErrNoInactive) {
		t.Errorf("extract from nothing: %v", err)
	}
	before := m.live.Load()
	view, err := c.ExtractConstants(ctx, container.Active, false)
	if err != nil {
		t.Fatal(err)
	}
	if n := m.live.Load(); n != before {
		t.Errorf("views take %d bytes", n-before)
	}
	copied, err := c.ExtractConstants(ctx, container.Active, true)
	if err != nil {
		t.Fatal(err)
	}
	if n := m.live.Load(); n <= before {
		t.Error("copies take no bytes")
	}
	if err := m.update(c, 2, container.Active); err != nil {
		t.Fatal(err)
	}
	for _, got := range []map[string]backend.Buffer{view, copied} {
		if first(got["fc.weight"]) != 1 || first(got["fc.bias"]) != 1 {
			t.Error("what was extracted has changed")
		}
		if err := c.Update(ctx, got, container.Inactive, container.Partial()); err != nil {
			t.Errorf("what was extracted does not go back: %v", err)
		}
		release(got)
	}
}

// blob lays the constants of a double out as AOTInductor does.
func blob(v float32) []byte {
	var b []byte
	for i, k := range info() {
		if k.FromFolded {
			continue
		}
		n := k.Shape.Numel()
		if i > cB {
			v = 1
		}
		for range n {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
		}
		for len(b)%container.BlobAlign != 0 {
			b = append(b, 0xee)
		}
	}
	return b
}

func TestUpdateFromBlob(t *testing.T) {
	m := &maker{}
	c := m.pool(t, container.Config{Instances: 1})
	if want := int64(len(blob(1))); c.BlobSize() != want {
		t.Errorf("a blob has %d bytes, want %d", c.BlobSize(), want)
	}
	path := filepath.Join(t.TempDir(), "weights.blob")
	if err := os.WriteFile(path, blob(6), 0o600); err != nil {
		t.Fatal(err)
	}
	b := blob(7)
	for v, update := range map[float32]func() error{
		5: func() error {
			return c.UpdateFromBlob(ctx, bytes.NewReader(blob(5)), c.BlobSize(), container.Active)
		},
		6: func() error { return c.UpdateFromFile(ctx, path, container.Active) },
		7: func() error { return c.UpdateFromBytes(ctx, b, container.Active, container.UserManaged()) },
		8: func() error { return c.UpdateFromBytes(ctx, blob(8)[:c.BlobSize()-60], container.Active) },
	} {
		if err := update(); err != nil {
			t.Fatal(err)
		}
		if s := mustRun(t, c); s.w != v || s.b != v || s.sum != 2*v {
			t.Errorf("blob %v: %+v", v, s)
		}
	}
	for name, tt := range map[string]struct {
		err  error
		want error
	}{
		"short":     {c.UpdateFromBytes(ctx, b[:len(b)-61], container.Active), container.ErrBlob},
		"long":      {c.UpdateFromBytes(ctx, append(b, 0), container.Active), container.ErrBlob},
		"empty":     {c.UpdateFromBytes(ctx, nil, container.Active), container.ErrBlob},
		"truncated": {c.UpdateFromBlob(ctx, bytes.NewReader(b[:100]), c.BlobSize(), container.Active), io.ErrUnexpectedEOF},
		"no file":   {c.UpdateFromFile(ctx, path+"x", container.Active), os.ErrNotExist},
	} {
		if !errors.Is(tt.err, tt.want) {
			t.Errorf("%s: %v", name, tt.err)
		}
	}
	if s := mustRun(t, c); s.w < 5 {
		t.Errorf("a blob that does not fit changed the active set: %+v", s)
	}
}

// packer is a double whose constants lie in a blob back to front.
type packer struct{ *double }

func (p packer) PackBlob(_ context.Context, i int, raw []byte, copy bool) (backend.Buffer, error) {
	out := make([]byte, len(raw))
	for j := range raw {
		out[len(out)-1-j] = raw[j]
	}
	return p.m.buffer(info()[i].Shape, out), nil
}

func TestBlobInAFormOfItsOwn(t *testing.T) {
	m := &maker{t: t}
	c, err := container.New(ctx, func(context.Context) (backend.Model, error) { return packer{&double{m: m}}, nil }, container.Config{Instances: 1})
	if err != nil {
		t.Fatal(err)
	}
	b := blob(0)
	binary.BigEndian.PutUint32(b, math.Float32bits(9)) // the last of w
	if err := c.UpdateFromBytes(ctx, b, container.Inactive); err != nil {
		t.Fatal(err)
	}
	got, err := c.ExtractConstants(ctx, container.Inactive, false)
	if err != nil {
		t.Fatal(err)
	}
	if last(got["fc.weight"]) != 9 {
		t.Errorf("the weight ends with %v", last(got["fc.weight"]))
	}
	release(got)
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

// A copy that fails half-way leaks nothing; the active set is as it was.
func TestCopyFails(t *testing.T) {
	m := &maker{}
	c := m.pool(t, container.Config{Instances: 1})
	mustRun(t, c)
	before := m.live.Load()
	values := m.version(2)
	defer release(values)
	values["fc_bias"] = broken{values["fc_bias"]}
	for _, which := range []container.Which{container.Active, container.Inactive} {
		if err := c.Update(ctx, values, which); !errors.Is(err, errKernel) {
			t.Errorf("%v: %v", which, err)
		}
		if n := m.live.Load() - before; n != 2*wideBytes {
			t.Errorf("%v: %d bytes more than the two values", which, n-2*wideBytes)
		}
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	if err := c.Update(ended, values, container.Active); !errors.Is(err, context.Canceled) {
		t.Errorf("with a context that has ended: %v", err)
	}
	if s := mustRun(t, c); s.w != 1 {
		t.Errorf("%+v", s)
	}
}

// broken is a buffer whose data cannot be read.
type broken struct{ backend.Buffer }

func (broken) Bytes(context.Context) ([]byte, error) { panic(errKernel) }
