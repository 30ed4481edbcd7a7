//go:build linux && cgo

package host

import (
	"slices"
	"strings"

	"github.com/loris-ml/loris/internal/ir"
)

// binding ties functions of PyTorch's C shim to an op. A function without a binding is the
// op that it is named for.
type binding struct {
	// functions are names without "aoti_torch_" and without the device, separated by spaces:
	// "mm_out" is cpu_mm_out, cuda_mm_out, aten_mm_out and mm_out, as far as there are such.
	// "=mm_out" is that alone.
	functions string
	op        string // ATen's name; "" for that of the function
	// kernel reads the words of a call for the CPU itself and takes the place of the op's.
	kernel opFunc
	// device computes a call on an accelerator without a Program. What it cannot is an error
	// wrapping backend.ErrUnsupported.
	device deviceFunc
	// noFallback says that the CPU must not compute the op for an accelerator, from copies:
	// it does more than compute results and write into its first argument.
	noFallback bool
}

// deviceFunc computes a call on an accelerator.
type deviceFunc func(p *streamContext, c call) error

var bindings = []binding{
	// Products, convolutions and layers: kernels that read the words of the call.
	{functions: "mm_out bmm_out", kernel: mmOut, device: nativeProduct(1, -1)},
	{functions: "addmm_out baddbmm_out", kernel: addmmOut, device: nativeProduct(2, 1)},
	{functions: "_mm_plus_mm_out", kernel: mmPlusMMOut},
	{functions: "_int_mm_out"},
	{functions: "convolution", kernel: convolutionCall},
	{functions: "mkldnn__convolution_pointwise", kernel: mkldnnConvolutionPointwise},
	{functions: "mkldnn__convolution_pointwise_binary", kernel: mkldnnConvolutionPointwiseBinary},
	{functions: "mkldnn__convolution_pointwise_binary_", kernel: mkldnnConvolutionPointwiseBinaryInPlace},
	{functions: "mkldnn__convolution_transpose_pointwise", kernel: mkldnnConvolutionTransposePointwise},
	{functions: "mkldnn_rnn_layer", kernel: mkldnnRNNLayer},
	{functions: "_linear_pointwise", kernel: linearPointwise},
	{functions: "_linear_pointwise_binary", kernel: linearPointwiseBinary},
	{functions: "_mkl_linear", kernel: mklLinear},
	{functions: "_qlinear_pointwise_tensor", kernel: qlinearPointwiseTensor},
	{functions: "_qlinear_pointwise_binary_tensor", kernel: qlinearPointwiseBinaryTensor},
	{functions: "_qconv_pointwise_tensor _qconv2d_pointwise_tensor", kernel: qconvPointwiseTensor},
	{functions: "_qconv2d_pointwise_binary_tensor", kernel: qconv2dPointwiseBinaryTensor},
	{functions: "=cpu__scaled_dot_product_flash_attention_for_cpu", kernel: flashAttentionForCPU},

	// Tensors that change their own size or storage, and results whose size depends on data.
	{functions: "resize_", kernel: resizeInPlace, device: deviceResize, noFallback: true},
	{functions: "resize_as_", kernel: resizeAsInPlace, device: deviceResizeAs, noFallback: true},
	{functions: "set__source_Tensor", kernel: setSourceTensor, device: deviceSet, noFallback: true},
	{functions: "_fused_moving_avg_obs_fq_helper _fused_moving_avg_obs_fq_helper_functional", noFallback: true},
	{functions: "reshape", device: (*streamContext).reshape},
	{functions: "nonzero", device: (*streamContext).nonzero},
	{functions: "masked_select", device: (*streamContext).maskedSelect},
	{functions: "repeat_interleave_Tensor", device: (*streamContext).repeatInterleave},

	// Functions that are not named for their op.
	{functions: "_embedding_bag_forward_only", op: "_embedding_bag"},
	{functions: "_scaled_dot_product_flash_attention_v2", op: "_scaled_dot_product_flash_attention"},
	{functions: "=_scaled_mm", op: "_scaled_mm_amax"},
	{functions: "subtract_Tensor", op: "sub"},

	// Overloads. An argument's kind tells the op what it was called with.
	{functions: "add_Scalar add_Tensor", op: "add"},
	{functions: "bernoulli__Tensor bernoulli__float", op: "bernoulli_"},
	{functions: "bucketize_Tensor", op: "bucketize"},
	{functions: "fill__Scalar", op: "fill_"},
	{functions: "index_Tensor", op: "index"},
	{functions: "mul_Scalar mul_Tensor", op: "mul"},
	{functions: "normal_functional", op: "normal_"},
	{functions: "pow_Scalar pow_Tensor_Scalar pow_Tensor_Tensor", op: "pow"},
	{functions: "rand_generator", op: "rand"},
	{functions: "rand_like_generator", op: "rand_like"},
	{functions: "randint_generator randint_low randint_low_out", op: "randint"},
	{functions: "randint_like_low_dtype", op: "randint_like"},
	{functions: "randn_generator", op: "randn"},
	{functions: "randn_like_generator", op: "randn_like"},
	{functions: "scatter_src_out scatter_value_out", op: "scatter"},
	{functions: "scatter_reduce_two_out", op: "scatter_reduce"},
	{functions: "searchsorted_Scalar searchsorted_Tensor", op: "searchsorted"},
	{functions: "slice_Tensor", op: "slice"},
	{functions: "sort_stable", op: "sort"},
	{functions: "squeeze_dim", op: "squeeze"},
	{functions: "uniform", op: "uniform_"},
}

// function is how one function of symbolText is computed.
type function struct {
	op string // the op's name in ATen; "" if there is none
	// host computes a call whose tensors the CPU can read; nil where the host lacks the op.
	// For a function of accelerators it is the CPU fallback, from copies of the tensors.
	host    opFunc
	device  deviceFunc // computes on an accelerator without a Program
	program deviceFunc // computes on an accelerator by the op's Program
	cuda    bool       // it is for CUDA alone
}

// functions has, by line of symbolText, how each is computed.
var functions = bind(signatures)

// devicePrefixes are what the names of functions begin with, before that of the op.
var devicePrefixes = []string{"cpu_", "cuda_", "aten_"}

// split returns the device in a function's name and what follows it.
func split(name string) (device, rest string) {
	for _, p := range devicePrefixes {
		if rest, ok := strings.CutPrefix(name, p); ok {
			return p, rest
		}
	}
	return "", name
}

func bind(signatures []signature) []function {
	rows, byName := map[string]*binding{}, map[string]*signature{}
	for i := range bindings {
		for name := range strings.FieldsSeq(bindings[i].functions) {
			rows[name] = &bindings[i]
		}
	}
	for i := range signatures {
		byName[strings.TrimPrefix(signatures[i].name, shimPrefix)] = &signatures[i]
	}
	out := make([]function, len(signatures))
	for i := range signatures {
		s := &signatures[i]
		if !s.math {
			continue
		}
		name := strings.TrimPrefix(s.name, shimPrefix)
		device, plain := split(name)
		row := rows["="+name]
		if row == nil {
			row = rows[plain]
		}
		if row == nil {
			row = &binding{}
		}
		// A kernel reads the words of a call by their places.
		if cpu := byName["cpu_"+plain]; row.kernel != nil && cpu != nil && !sameKinds(s, cpu) {
			row = &binding{op: row.op, device: row.device, noFallback: true}
		}
		out[i] = row.function(device, plain)
	}
	return out
}

// function returns how a function is computed, which the row is for.
func (row *binding) function(device, plain string) function {
	f := function{op: row.op, host: row.kernel, device: row.device, cuda: device == "cuda_"}
	for _, name := range []string{plain, strings.TrimSuffix(strings.TrimSuffix(plain, "_v2"), "_out")} {
		if f.op == "" && (eagerKernelOf(name) != nil) {
			f.op = name
		}
	}
	program := decompositionOf(f.op)
	switch {
	case f.host != nil:
	case opTable[f.op].eager != nil:
		f.host = callEager(opTable[f.op].eager)
	case program != nil:
		f.host = evaluateProgram(program)
	}
	if f.cuda && row.noFallback {
		f.host = nil
	}
	if device == "cpu_" {
		f.device = nil
		return f
	}
	switch {
	case opTable[f.op].view:
		f.program = func(_ *streamContext, c call) error { return f.host(c) }
	case program != nil && !hostOnly(f.op):
		f.program = deviceProgram(program)
	}
	return f
}

// hostOnly reports whether accelerators have an op computed by the CPU.
func hostOnly(name string) bool {
	op, ok := ir.Lookup(name)
	return ok && op.Spec().HostOnly
}

func sameKinds(a, b *signature) bool {
	return slices.EqualFunc(a.params, b.params, func(x, y param) bool { return x.kind == y.kind })
}
