package ir

import "fmt"

// DType is the element type of a tensor. The names are short forms of
// PyTorch's: f32 is torch.float32, i64 torch.int64 and so on.
type DType uint8

// The dtypes. C64 and C128 compute as pairs of F32 and F64. No arithmetic is defined
// on the F8 kinds, as in PyTorch: they can be held, moved, saved, viewed and cast to
// and from the real others, and _scaled_mm multiplies matrices of them.
const (
	Invalid DType = iota
	Bool
	U8
	I8
	I16
	I32
	I64
	F16
	BF16
	F32
	F64
	C64
	C128
	F8E4M3FN
	F8E5M2
	numDTypes
)

// DefaultDType is the floating dtype that integers turn into under true
// division, exp and the like, as torch.get_default_dtype.
const DefaultDType = F32

type dtypeInfo struct {
	name string
	size int
	kind dtypeKind
}

type dtypeKind uint8

// Categories in ATen's order of promotion.
const (
	kindBool dtypeKind = iota + 1
	kindInt
	kindFloat
	kindComplex
	kindF8
)

var dtypes = [numDTypes]dtypeInfo{
	Invalid:  {"invalid", 0, 0},
	Bool:     {"bool", 1, kindBool},
	U8:       {"u8", 1, kindInt},
	I8:       {"i8", 1, kindInt},
	I16:      {"i16", 2, kindInt},
	I32:      {"i32", 4, kindInt},
	I64:      {"i64", 8, kindInt},
	F16:      {"f16", 2, kindFloat},
	BF16:     {"bf16", 2, kindFloat},
	F32:      {"f32", 4, kindFloat},
	F64:      {"f64", 8, kindFloat},
	C64:      {"c64", 8, kindComplex},
	C128:     {"c128", 16, kindComplex},
	F8E4M3FN: {"f8e4m3fn", 1, kindF8},
	F8E5M2:   {"f8e5m2", 1, kindF8},
}

// DTypes returns every dtype, storage-only ones included, in declaration order.
func DTypes() []DType {
	out := make([]DType, 0, numDTypes-1)
	for d := Bool; d < numDTypes; d++ {
		out = append(out, d)
	}
	return out
}

// ComputeDTypes returns the dtypes on which backends have arithmetic: the real ones
// but for the 8-bit floats.
func ComputeDTypes() []DType { return DTypes()[:F64] }

// String returns the short name, for example "f32".
func (d DType) String() string {
	if d < numDTypes {
		return dtypes[d].name
	}
	return fmt.Sprintf("dtype(%d)", uint8(d))
}

// Size returns the bytes of one element.
func (d DType) Size() int { return dtypes[d].size }

// IsFloat reports whether d is f16, bf16, f32 or f64.
func (d DType) IsFloat() bool { return dtypes[d].kind == kindFloat }

// IsInt reports whether d is a signed or unsigned integer; bool is not.
func (d DType) IsInt() bool { return dtypes[d].kind == kindInt }

// IsIntegral reports whether d is an integer or bool.
func (d DType) IsIntegral() bool { return dtypes[d].kind == kindInt || d == Bool }

// IsSigned reports whether d has negative values.
func (d DType) IsSigned() bool { return d != Bool && d != U8 }

// IsStorage reports whether backends only hold and move d: the 8-bit floats and the
// complex dtypes, which are computed with as pairs of reals.
func (d DType) IsStorage() bool { return dtypes[d].kind >= kindComplex }

// IsF8 reports whether d is one of the 8-bit floats.
func (d DType) IsF8() bool { return dtypes[d].kind == kindF8 }

// IsFloatOrF8 reports whether d is a float of any width.
func (d DType) IsFloatOrF8() bool { return d.IsFloat() || d.IsF8() }

// IsComplex reports whether d is c64 or c128.
func (d DType) IsComplex() bool { return dtypes[d].kind == kindComplex }

// HasGradient reports whether gradients flow through values of d: floats of any width
// and complex numbers. Cotangents have the dtype of their values, as in PyTorch.
func (d DType) HasGradient() bool { return dtypes[d].kind >= kindFloat }

// Part returns the dtype of the real and the imaginary parts of a complex dtype, and
// any other dtype itself.
func (d DType) Part() DType {
	switch d {
	case C64:
		return F32
	case C128:
		return F64
	}
	return d
}

// complexOf returns the complex dtype that ATen makes of d: c128 for f64 and c128, else c64.
func (d DType) complexOf() DType {
	if d == F64 || d == C128 {
		return C128
	}
	return C64
}

// Valid reports whether d names a dtype.
func (d DType) Valid() bool { return d > Invalid && d < numDTypes }

// ParseDType returns the dtype with the given short name.
func ParseDType(name string) (DType, error) {
	for d := Bool; d < numDTypes; d++ {
		if dtypes[d].name == name {
			return d, nil
		}
	}
	return Invalid, fmt.Errorf("%w: no dtype is named %q", ErrDType, name)
}

// PromoteTypes returns the dtype that an operation on a and b computes in, by
// ATen's table (c10/core/ScalarType.h, promoteTypes): the wider of one
// category, the higher category otherwise, with u8 and a signed integer
// meeting in the signed one that holds both and f16 with bf16 in f32.
func PromoteTypes(a, b DType) DType {
	switch {
	case a == b:
		return a
	case a == Invalid || b == Invalid:
		return a | b
	}
	ka, kb := dtypes[a].kind, dtypes[b].kind
	if ka == kindF8 || kb == kindF8 {
		return Invalid
	}
	if ka != kb {
		if ka < kb {
			a, b, kb = b, a, ka
		}
		if a == C64 && b == F64 {
			return C128
		}
		return a
	}
	if a > b {
		a, b = b, a
	}
	switch {
	case a == U8 && b == I8:
		return I16
	case a == F16 && b == BF16:
		return F32
	}
	return b
}

// resultType returns the dtype of an operation over the values by ATen's
// rules: tensors with dimensions decide before tensors without, and those
// before plain numbers; a lower group matters only when its category is higher.
func resultType(vals ...Value) DType {
	var dim, zero, wrapped DType
	for _, v := range vals {
		d := v.DType()
		switch {
		case v.wrapped():
			if dtypes[d].kind == kindFloat {
				d = DefaultDType
			}
			wrapped = PromoteTypes(wrapped, d)
		case v.Shape().Rank() == 0:
			zero = PromoteTypes(zero, d)
		default:
			dim = PromoteTypes(dim, d)
		}
	}
	return combineCategory(dim, combineCategory(zero, wrapped))
}

func combineCategory(higher, lower DType) DType {
	if dtypes[lower].kind > dtypes[higher].kind {
		if higher == Invalid || dtypes[lower].kind > dtypes[higher].kind {
			return PromoteTypes(higher, lower)
		}
	}
	if higher != Invalid {
		return higher
	}
	return lower
}
