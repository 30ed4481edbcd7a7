//go:build cuda && linux && cgo

package driver

/*
#include <stdlib.h>
#include "calls.h"
*/
import "C"

import (
	"fmt"
	"sync"
	"unsafe"
)

// BLAS is cuBLASLt, the library of matrix products.
type BLAS struct {
	l    *C.lori_cublaslt
	path string
}

// OpenBLAS opens cuBLASLt at path, a file or a folder; "" looks where
// EnvCUBLASLt says, and else for the names that it is installed under, those
// first that go with the driver's version. It takes some tenths of a second.
//
// Errors: ErrNoLibrary, ErrOldDriver if a function is missing.
func OpenBLAS(path string, driver Version) (*BLAS, error) {
	handle, path, err := open("cuBLASLt", path, EnvCUBLASLt, versioned("libcublasLt", driver), ErrNoLibrary,
		"set "+EnvCUBLASLt+" to the folder that has it")
	if err != nil {
		return nil, err
	}
	b := &BLAS{path: path, l: (*C.lori_cublaslt)(C.calloc(1, C.sizeof_lori_cublaslt))}
	if missing := C.lori_cu_resolve_cublaslt(handle, b.l); missing != nil {
		return nil, &SymbolError{Library: path, Symbol: C.GoString(missing)}
	}
	return b, nil
}

// Version returns the library's own number.
func (b *BLAS) Version() int { return int(C.lori_cu_blas_version(b.l)) }

// Path returns the file that was opened.
func (b *BLAS) Path() string { return b.path }

// BLASHandle is cuBLASLt on one device. It is safe for concurrent use.
type BLASHandle struct {
	b   *BLAS
	ctx *Context
	h   C.cublasLtHandle_t
}

// NewBLAS makes cuBLASLt ready for the context's device.
func (c *Context) NewBLAS(b *BLAS) (*BLASHandle, error) {
	h := &BLASHandle{b: b, ctx: c}
	var r C.CUresult
	s := C.lori_cu_blas_create(c.drv.c, c.c, b.l, &h.h, &r)
	if err := h.check("cublasLtCreate", s, r); err != nil {
		return nil, err
	}
	return h, nil
}

// Close frees what cuBLASLt holds on the device. Calling it again does nothing.
func (h *BLASHandle) Close() error {
	if h.h == nil {
		return nil
	}
	handle := h.h
	h.h = nil
	var r C.CUresult
	s := C.lori_cu_blas_destroy(h.ctx.drv.c, h.ctx.c, h.b.l, handle, &r)
	return h.check("cublasLtDestroy", s, r)
}

func (h *BLASHandle) check(call string, s C.cublasStatus_t, r C.CUresult) error {
	if r != 0 {
		return h.ctx.check("cuCtxSetCurrent", r)
	}
	if s == 0 {
		return nil
	}
	var name, text *C.char
	C.lori_cu_blas_text(h.b.l, s, &name, &text)
	e := &Error{Call: call, Code: int(s), Name: C.GoString(name), Text: C.GoString(text)}
	switch s {
	case C.LORI_BLAS_ALLOC_FAILED:
		e.is = []error{ErrOutOfMemory}
	case C.LORI_BLAS_INVALID_VALUE:
		e.is = []error{ErrInvalid}
	case C.LORI_BLAS_NOT_SUPPORTED:
		e.is = []error{ErrNotSupported}
	}
	return fmt.Errorf("cuda:%d: %w", h.ctx.dev.index, e)
}

// DataType is the type of a matrix's elements.
type DataType uint32

// The types of elements. The 8-bit floats need a device of compute capability
// 8.9 or more.
const (
	F32    DataType = C.LORI_R_32F
	F64    DataType = C.LORI_R_64F
	F16    DataType = C.LORI_R_16F
	BF16   DataType = C.LORI_R_16BF
	I8     DataType = C.LORI_R_8I
	I32    DataType = C.LORI_R_32I
	F8E4M3 DataType = C.LORI_R_8F_E4M3
	F8E5M2 DataType = C.LORI_R_8F_E5M2
)

// Size returns the bytes of an element.
func (t DataType) Size() int {
	switch t {
	case F64:
		return 8
	case F32, I32:
		return 4
	case F16, BF16:
		return 2
	}
	return 1
}

// Activation is what is applied to a product, after the bias.
type Activation uint8

// The activations.
const (
	NoActivation Activation = iota
	ReLU
	GELU // by tanh
)

// Matrix is a row-major matrix, or a batch of them, as it lies in memory.
type Matrix struct {
	Type DataType
	// Trans says that it lies transposed.
	Trans bool
	// LD is the distance in elements of two rows as they lie; 0 for dense.
	LD int
	// Stride is the distance in elements of two matrices of a batch; 0 means that
	// the batch shares one.
	Stride int
}

// minAlign is what the addresses of matrices are multiples of at least.
const minAlign = 16

// MatmulSpec describes D = activation(alpha·A·B + beta·C + bias), where A is M×K,
// B is K×N, C and D, of one layout, are M×N, and the bias, of BiasType, is a vector
// of N. A product of D's type I32 is of I8.
//
// Of 8-bit floats, not both E5M2, cuBLASLt takes those whose A lies by rows and B
// transposed, with K, N and the leading dimensions multiples of 16, and a bias of F16
// for D of F16 and of BF16 otherwise. I8 are to lie the same way.
type MatmulSpec struct {
	M, N, K    int
	Batch      int // 0 is 1
	A, B, D    Matrix
	BiasType   DataType
	Bias       bool
	Activation Activation
	TF32       bool  // F32 operands may be rounded to TF32
	ScaleRows  bool  // 8-bit floats are scaled by vectors of M and of N numbers
	FastAccum  bool  // sums of 8-bit floats may have fewer bits
	Workspace  int64 // bytes that may be used at most
	// Align is what the addresses of A, B, C and D are multiples of in each run: a
	// power of two from 16 to 256. 0 is 16.
	Align int
}

// Matmul is a product that is ready to run. Its methods exclude each other.
type Matmul struct {
	h       *BLASHandle
	bias    bool
	mu      sync.Mutex
	m       *C.lori_matmul // guarded by mu; nil when closed
	choices []MatmulChoice
}

// MatmulChoice is one way to compute a product.
type MatmulChoice struct {
	Workspace int64   // bytes that it needs
	Waves     float32 // how often it fills the device; 1 is best
}

// NewMatmul asks cuBLASLt how it would compute a product. What it cannot
// compute is an error that is ErrNotSupported or ErrInvalid.
func (h *BLASHandle) NewMatmul(spec MatmulSpec) (*Matmul, error) {
	if spec.M <= 0 || spec.N <= 0 || spec.K <= 0 || spec.Batch < 0 || spec.D.Trans {
		return nil, fmt.Errorf("cuda:%d: %w: matrix product %d×%d×%d", h.ctx.dev.index, ErrInvalid, spec.M, spec.N, spec.K)
	}
	c := spec.c()
	m := &Matmul{h: h, bias: spec.Bias}
	m.m = (*C.lori_matmul)(C.calloc(1, C.sizeof_lori_matmul))
	var r C.CUresult
	var call *C.char
	s := C.lori_cu_matmul_create(h.ctx.drv.c, h.ctx.c, h.b.l, h.h, &c, m.m, &r, &call)
	if err := h.check(C.GoString(call), s, r); err != nil {
		_ = m.Close() // what was made so far; the first error tells more
		return nil, fmt.Errorf("matrix product %d×%d×%d: %w", spec.M, spec.N, spec.K, err)
	}
	for _, x := range m.m.choices[:m.m.n] {
		m.choices = append(m.choices, MatmulChoice{int64(x.workspaceSize), float32(x.wavesCount)})
	}
	return m, nil
}

// c turns the product around: cuBLASLt's matrices are column-major, and a
// row-major matrix is a column-major one transposed, so Dᵀ = Bᵀ·Aᵀ.
func (s *MatmulSpec) c() C.lori_matmul_spec {
	c := C.lori_matmul_spec{
		a: s.B.c(s.K, s.N), b: s.A.c(s.M, s.K), d: s.D.c(s.M, s.N),
		batch: C.int32_t(max(s.Batch, 1)), compute: C.LORI_COMPUTE_32F, scale: C.LORI_R_32F,
		epilogue: C.LORI_EPILOGUE_DEFAULT, bias_type: C.uint32_t(s.BiasType), workspace: C.uint64_t(s.Workspace),
		align: C.uint32_t(max(s.Align, minAlign)),
	}
	if s.ScaleRows {
		c.scale_rows = 1
	}
	if s.FastAccum {
		c.fast = 1
	}
	if s.B.Trans {
		c.transa = C.LORI_OP_T
	}
	if s.A.Trans {
		c.transb = C.LORI_OP_T
	}
	switch {
	case s.A.Type == F64:
		c.compute, c.scale = C.LORI_COMPUTE_64F, C.LORI_R_64F
	case s.A.Type == I8 && s.D.Type == I32:
		c.compute, c.scale = C.LORI_COMPUTE_32I, C.LORI_R_32I
	case s.A.Type == F32 && s.TF32:
		c.compute = C.LORI_COMPUTE_TF32
	}
	switch s.Activation {
	case ReLU:
		c.epilogue = C.LORI_EPILOGUE_RELU
	case GELU:
		c.epilogue = C.LORI_EPILOGUE_GELU
	}
	if s.Bias {
		if s.Activation == NoActivation {
			c.epilogue = 0
		}
		c.epilogue |= C.LORI_EPILOGUE_BIAS
	}
	return c
}

// c describes a row-major matrix of rows×cols as the column-major one that lies
// in the same memory.
func (x Matrix) c(rows, cols int) C.lori_matrix {
	if x.Trans {
		rows, cols = cols, rows
	}
	ld := x.LD
	if ld == 0 {
		ld = cols
	}
	return C.lori_matrix{
		_type: C.uint32_t(x.Type), rows: C.uint64_t(cols), cols: C.uint64_t(rows),
		ld: C.int64_t(ld), stride: C.int64_t(x.Stride),
	}
}

// Choices returns the ways to compute the product, the most promising first.
func (m *Matmul) Choices() []MatmulChoice { return m.choices }

// MatmulArgs are the operands of one run. Addresses are aligned as the spec says.
type MatmulArgs struct {
	A, B, C, D  DevicePtr // C may be 0 if Beta is
	Bias        DevicePtr // if the product has one
	Alpha, Beta float64
	// ScaleA, ScaleB and ScaleD point to one float32 each, by which 8-bit floats
	// are multiplied; 0 for none. With ScaleRows the first two point to vectors, and
	// there has to be one each.
	ScaleA, ScaleB, ScaleD DevicePtr
	Choice                 int       // of Choices
	Workspace              DevicePtr // of the bytes that the choice needs, aligned to 256
}

// Run enqueues the product into a stream.
func (m *Matmul) Run(s *Stream, a MatmulArgs) error {
	if a.Choice < 0 || a.Choice >= len(m.choices) || m.bias != (a.Bias != 0) {
		return fmt.Errorf("cuda:%d: %w: choice %d of %d, bias %#x", m.h.ctx.dev.index, ErrInvalid, a.Choice, len(m.choices), a.Bias)
	}
	if a.C == 0 {
		a.C = a.D
	}
	run := C.lori_matmul_run{
		a: C.uint64_t(a.B), b: C.uint64_t(a.A), c: C.uint64_t(a.C), d: C.uint64_t(a.D),
		workspace: C.uint64_t(a.Workspace), workspace_size: C.uint64_t(m.choices[a.Choice].Workspace),
		bias: C.uint64_t(a.Bias), scale_a: C.uint64_t(a.ScaleB), scale_b: C.uint64_t(a.ScaleA),
		scale_d: C.uint64_t(a.ScaleD), alpha: C.double(a.Alpha), beta: C.double(a.Beta),
		choice: C.int(a.Choice),
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.m == nil {
		return fmt.Errorf("cuda:%d: %w: the product is closed", m.h.ctx.dev.index, ErrInvalid)
	}
	var r C.CUresult
	var call *C.char
	status := C.lori_cu_matmul_run(m.h.ctx.drv.c, m.h.ctx.c, m.h.b.l, m.h.h, m.m, &run, s.s, &r, &call)
	if status == 0 && r == 0 {
		return nil
	}
	return m.h.check(C.GoString(call), status, r)
}

// Close frees the descriptions of the product. Calling it again does nothing.
func (m *Matmul) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.m == nil {
		return nil
	}
	p := m.m
	m.m = nil
	s := C.lori_cu_matmul_destroy(m.h.b.l, p)
	C.free(unsafe.Pointer(p))
	return m.h.check("cublasLtMatmulDescDestroy", s, 0)
}
