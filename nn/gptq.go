package nn

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/internal/tensorfile"
	"github.com/loris-ml/loris/safetensors"
)

// GPTQv2 says that a file has zero points as they are ("checkpoint_format": "gptq_v2" in the model's
// configuration); in others they are one less.
func GPTQv2() Option { return Option{"GPTQv2", func(c *config) { c.gptqV2 = true }} }

// gptqFile is the tensors of a layer in a file that GPTQ wrote.
type gptqFile struct {
	f    *safetensors.File
	name string
}

// LoadGPTQ reads a layer of 4 or 8 bits from a safetensors file in the packing of AutoGPTQ and
// GPTQModel: name.qweight, name.qzeros, name.scales, and, where there are any, name.g_idx and
// name.bias. Weights of groups that are not next to each other (act-order) are put in order, and
// inputs with them. The bits and the groups follow from the shapes. Options: With, GPTQv2. A tensor
// that is missing, of another dtype or does not fit the others is an error that names it and wraps
// ErrMissing or ErrMismatch.
func LoadGPTQ(f *safetensors.File, name string, opts ...Option) (*QuantizedLinear, error) {
	c := newConfig("LoadGPTQ", opts, "GPTQv2")
	l, err := (&gptqFile{f, name}).load(c)
	if err != nil {
		return nil, fmt.Errorf("nn: load %s as GPTQ: %w", name, err)
	}
	return l, nil
}

func (g *gptqFile) load(c *config) (*QuantizedLinear, error) {
	weights, ws, err := g.ints("qweight")
	if err != nil {
		return nil, err
	}
	zeros, zs, err := g.ints("qzeros")
	if err != nil {
		return nil, err
	}
	scales, ss, err := g.read("scales", loris.F16, loris.BF16, loris.F32)
	if err != nil {
		return nil, err
	}
	if ss.Rank() != 2 || ws.Rank() != 2 || zs.Rank() != 2 || ws.Dim(1) != ss.Dim(1) || zs.Dim(0) != ss.Dim(0) || ss.Numel() == 0 {
		return nil, g.mismatch("qweight %v, qzeros %v and scales %v do not fit", ws, zs, ss)
	}
	l := &QuantizedLinear{out: ss.Dim(1), groups: ss.Dim(0)}
	bits := 32 * zs.Dim(1) / l.out
	if bits != 4 && bits != 8 || zs.Dim(1)*32 != bits*l.out {
		return nil, g.mismatch("qzeros %v and scales %v are not of 4 or 8 bits", zs, ss)
	}
	if l.in = ws.Dim(0) * 32 / bits; l.in == 0 || l.in%l.groups != 0 || bits == 4 && l.in/l.groups%2 != 0 {
		return nil, g.mismatch("%d groups of %d inputs", l.groups, l.in)
	}
	order, err := g.order(l)
	if err != nil {
		return nil, err
	}
	m := c.maker
	codes := unpackGPTQ(weights, bits, l.in, l.out)
	zero := make([]float32, l.out*l.groups) // [out, groups]
	off := 1
	if c.gptqV2 {
		off = 0
	}
	if bits == 8 {
		off -= 128 // codes become signed
	}
	perWord, mask := 32/bits, uint32(1)<<bits-1
	for j := range l.out {
		for k := range l.groups {
			zero[j*l.groups+k] = float32(int(zeros[k*zs.Dim(1)+j/perWord]>>(j%perWord*bits)&mask) + off)
		}
	}
	scale := m.FromBytes(scales, ss).Cast(loris.F32).Transpose(0, 1)
	l.variables(l.codes(m, codes, order, bits), scale, m.FromSlice(zero, l.out, l.groups))
	if order != nil {
		l.Order = l.Buffer("order", loris.NewVariable(m.FromSlice(order)))
	}
	return l, g.bias(l, m)
}

// unpackGPTQ returns the codes of words that hold 32/bits inputs each, [in, out].
func unpackGPTQ(words []uint32, bits, in, out int) []byte {
	codes := make([]byte, in*out)
	perWord, mask := 32/bits, uint32(1)<<bits-1
	for i := range in {
		from, to := words[i/perWord*out:][:out], codes[i*out:][:out]
		shift := i % perWord * bits
		for j, w := range from {
			to[j] = byte(w >> shift & mask)
		}
	}
	return codes
}

// codes puts codes [in, out] in order as the layer keeps them.
func (l *QuantizedLinear) codes(m loris.Maker, codes []byte, order []int64, bits int) *loris.Tensor {
	at := func(k int) []byte { // the inputs in their groups' order
		if order != nil {
			k = int(order[k])
		}
		return codes[k*l.out:][:l.out]
	}
	if bits == 8 {
		kept := make([]int8, l.out*l.in)
		for k := range l.in {
			for j, q := range at(k) {
				kept[j*l.in+k] = int8(int(q) - 128)
			}
		}
		return m.FromSlice(kept, l.out, l.groups, l.in/l.groups)
	}
	half := l.in / l.groups / 2
	kept := make([]uint8, l.out*l.in/2)
	for n := range l.in / 2 {
		first := n/half*2*half + n%half
		high := at(first + half)
		for j, low := range at(first) {
			kept[j*l.in/2+n] = low | high[j]<<4
		}
	}
	return m.FromSlice(kept, l.out, l.groups, half)
}

// order returns the inputs by group, or nil if they are so already.
func (g *gptqFile) order(l *QuantizedLinear) ([]int64, error) {
	if _, there := g.f.Lookup(g.name + ".g_idx"); !there {
		return nil, nil
	}
	group, s, err := g.ints("g_idx")
	if err != nil {
		return nil, err
	}
	if s.Rank() != 1 || len(group) != l.in {
		return nil, g.mismatch("g_idx is %v for %d inputs", s, l.in)
	}
	sorted := slices.IsSorted(group)
	order := make([]int64, l.in)
	for i := range order {
		order[i] = int64(i)
	}
	slices.SortStableFunc(order, func(a, b int64) int { return int(int64(group[a]) - int64(group[b])) })
	for k, i := range order {
		if int(group[i]) != k/(l.in/l.groups) {
			return nil, g.mismatch("g_idx does not give each of %d groups %d of %d inputs", l.groups, l.in/l.groups, l.in)
		}
	}
	if sorted {
		return nil, nil
	}
	return order, nil
}

// bias reads the bias if there is one.
func (g *gptqFile) bias(l *QuantizedLinear, m loris.Maker) error {
	data, s, err := g.read("bias", loris.F16, loris.BF16, loris.F32)
	if errors.Is(err, ErrMissing) {
		return nil
	}
	if err != nil {
		return err
	}
	if s.Rank() != 1 || s.Dim(0) != l.out {
		return g.mismatch("bias is %v for %d outputs", s, l.out)
	}
	l.Bias = l.Buffer("bias", loris.NewVariable(m.FromBytes(data, s).Cast(loris.F32)))
	return nil
}

func (g *gptqFile) mismatch(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrMismatch}, args...)...)
}

// read returns the bytes of a tensor of the layer, which must have one of the dtypes.
func (g *gptqFile) read(part string, dtypes ...loris.DType) ([]byte, loris.Shape, error) {
	name := g.name + "." + part
	info, ok := g.f.Lookup(name)
	if !ok {
		return nil, loris.Shape{}, fmt.Errorf("%q: %w", name, ErrMissing)
	}
	s, err := tensorfile.Shape(info)
	if err != nil || !slices.Contains(dtypes, s.DType()) {
		return nil, s, fmt.Errorf("%q is %s %v, not of %v: %w", name, info.DType, info.Shape, dtypes, ErrMismatch)
	}
	data, err := g.f.Bytes(name)
	return data, s, err
}

// ints is read of i32, as words.
func (g *gptqFile) ints(part string) ([]uint32, loris.Shape, error) {
	data, s, err := g.read(part, loris.I32)
	words := make([]uint32, len(data)/4)
	for i := range words {
		words[i] = binary.LittleEndian.Uint32(data[4*i:])
	}
	return words, s, err
}
