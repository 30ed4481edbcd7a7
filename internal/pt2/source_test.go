package pt2

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/internal/ir"
)

// sampleSource has what the sources of several generations have, in their forms.
const sampleSource = `
AOTInductorModel::AOTInductorModel(std::shared_ptr<ConstantMap> constants_map)
    : AOTInductorModelBase(3, 2, 3, device_str, std::move(cubin_dir), true) {
    inputs_info_[0].name = "arg0_1";
    inputs_info_[1].name = "arg1_1";
    inputs_info_[2].name = "arg2_1";
    constants_info_[0].name = "fc_weight";
    constants_info_[0].dtype = static_cast<int32_t>(cached_torch_dtype_float32);
    constants_info_[0].device_type = cached_torch_device_type_cpu;
    constants_info_[0].offset = 0;
    constants_info_[0].data_size = 192;
    constants_info_[0].from_folded = false;
    constants_info_[0].type = static_cast<int32_t>(torch::aot_inductor::ConstantType::Parameter);
    constants_info_[0].shape = {5, 8};
    constants_info_[0].stride = {8, 1};
    constants_info_[0].layout = static_cast<int32_t>(cached_torch_layout_strided);
    constants_info_[0].original_fqn = "fc.weight";
    constants_info_[1].name = "seen";
    constants_info_[1].dtype = cached_torch_dtype_int64;
    constants_info_[1].data_size = 64;
    constants_info_[1].type = static_cast<int32_t>(torch::aot_inductor::ConstantType::Buffer);
    constants_info_[1].shape = {};
    constants_info_[1].stride = {};
    constants_info_[1].opaque_metadata = {1L, 255L};
    constants_info_[1].original_fqn = "seen";
    constants_info_[2].name = "_FOLDED_CONST_add";
    constants_info_[2].dtype = cached_torch_dtype_bfloat16;
    constants_info_[2].from_folded = true;
    constants_info_[2].type = static_cast<int32_t>(torch::aot_inductor::ConstantType::FoldedConstant);
    constants_info_[2].shape = {3};
    in_spec_ = R"([1, {"type": "builtins.tuple"}])";
    out_spec_ =
    R"([1, {"type":)"
    R"( null}])"
    ;
    outputs_info_[0].name = "output0";
    outputs_info_[1].name = "output1";
}
    ConstantHandle arg0_1 = ConstantHandle(input_handles[0]);
    int32_t arg0_1_expected_dtype = aoti_torch_dtype_float32();
    if (arg0_1_expected_dtype != arg0_1_dtype) {
    if (arg0_1_size[0] < 2) {
    if (arg0_1_size[0] > 16) {
    if (arg0_1_size[1] < 3) {
    if (8 != arg0_1_size[2]) {
    if (8 != arg0_1_stride[1]) {
    if (1 != arg0_1_stride[2]) {
    int32_t arg0_1_expected_device_type = 0;
    int32_t arg1_1_expected_dtype = aoti_torch_dtype_int64();
    if (arg1_1_size[0] < 2) {
    if (arg1_1_size[0] > 9223372036854775807) {
    if (1 != arg1_1_stride[1]) {
    int32_t arg2_1_expected_dtype = aoti_torch_dtype_bool();
    if (3 != arg2_1_size[0]) {
    if (5 != arg2_1_size[1]) {
    if (1 != arg2_1_stride[0]) {
    if (3 != arg2_1_stride[1]) {
void AOTInductorModel::run_impl(
    int64_t s21 = arg0_1_size[0];
    int64_t s6 = s21;
    int64_t s50 = arg0_1.sizes()[1];
    if (_check_aoti_runtime_check_inputs_env()) { assert_size_stride(arg0_1, {s21, s50, 8L}, {8L*s50, 8L, 1L}, "input"); }
    if (_check_aoti_runtime_check_inputs_env()) { assert_size_stride(arg1_1, {s6, 1L + 2L*s50}, {1L + 2L*s50, 1L}, "input"); }
    if (_check_aoti_runtime_check_inputs_env()) { assert_size_stride(buf0, {s21, 4L}, {4L, 1L}, "torch.ops.aten.cumsum.default"); }
// Compile cmd
// g++ x.cpp -O3 -march=x86-64-v3 -o x.o
`

func TestParseSource(t *testing.T) {
	s := ParseSource([]byte(sampleSource))
	var got []string
	for i := range s.Inputs {
		got = append(got, fmt.Sprint(s.Inputs[i].String(), " ", s.Inputs[i].RowMajor))
	}
	want := []string{
		"arg0_1: float32[s21 in 0|1|2..16, s50 in 3.., 8] on cpu true",
		"arg1_1: int64[s6 in 0|1|2.., 1 + 2*s50 in 0..] true",
		"arg2_1: bool[3, 5] strides [1, 3] false",
	}
	if !slices.Equal(got, want) {
		t.Errorf("inputs:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if !slices.Equal(s.Outputs, []string{"output0", "output1"}) {
		t.Errorf("outputs: %v", s.Outputs)
	}
	if s.InSpec != `[1, {"type": "builtins.tuple"}]` || s.OutSpec != `[1, {"type": null}]` {
		t.Errorf("call spec %s and %s", s.InSpec, s.OutSpec)
	}
	if len(s.Constants) != 3 {
		t.Fatalf("constants: %+v", s.Constants)
	}
	fc := s.Constants[0]
	if fc.Name != "fc_weight" || fc.OriginalName != "fc.weight" || fc.Shape != ir.MakeShape(ir.F32, 5, 8) || fc.Bytes != 192 ||
		fc.Type != backend.ConstantParameter || fc.FromFolded || !slices.Equal(fc.Strides, []int64{8, 1}) || fc.Device != "cpu" {
		t.Errorf("constant 0: %+v", fc)
	}
	if c := s.Constants[1]; c.Shape != ir.MakeShape(ir.I64) || string(c.Opaque) != "\x01\xff" || c.Type != backend.ConstantBuffer {
		t.Errorf("constant 1: %+v", c)
	}
	if c := s.Constants[2]; !c.FromFolded || c.Shape != ir.MakeShape(ir.BF16, 3) || c.Type != backend.ConstantFolded {
		t.Errorf("constant 2: %+v", c)
	}
	if got := march([]byte(sampleSource)); got != "x86-64-v3" {
		t.Errorf("march %q", got)
	}
}

func TestReadOnlyConstants(t *testing.T) {
	const head = "constants_info_[0].name = \"w\";\n"
	for line, want := range map[string]bool{
		"": true,
		"[[maybe_unused]] auto& w = constants_->at(0);":                         true,
		"cpp_fused_0((const float*)(w.data_ptr()), (float*)(buf0.data_ptr()));": true,
		"cpp_fused_0((const float*)(x.data_ptr()), (float*)(w.data_ptr()));":    false,
		"cpp_fused_0((const float*)(w.data_ptr()), (float*)(w.data_ptr()));":    false,
		"// w.copy_(x)": true,
		`folded_constants_map["w"] = output_handles[0];`:                                                                                                      true,
		"AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_cpu_addmm_out(buf0, w, arg0_1, 1L));":                                                                         true,
		"AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_cpu_addmm_out(w, buf0, arg0_1, 1L));":                                                                         false,
		"AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_cpu_f(buf0, &temporary_reference(w.get())));":                                                                 true,
		"AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_cpu_mm_out(b, wrap_with_raii_handle_if_needed(reinterpret_tensor_wrapper(w, 2, a, b, 0L))));":                 true,
		"AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_copy_(wrap_with_raii_handle_if_needed(reinterpret_tensor_wrapper(w, 2, a, b, 0L)), x));":                      false,
		"auto view = reinterpret_tensor_wrapper(w, 2, a, b, 0L);":                                                                                             true,
		"auto v = reinterpret_tensor_wrapper(w, 2, a, b, 0L);\nAOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_cpu_mm_out(b, x, wrap_with_raii_handle_if_needed(v)));": true,
		"auto v = reinterpret_tensor_wrapper(w, 2, a, b, 0L);\ncpp_fused((float*)(v.data_ptr()));":                                                            false,
		"auto v = reinterpret_tensor_wrapper(w, 2, a, b, 0L);\nRAIIAtenTensorHandle r(v);\nAOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_cpu_mm_out(b, x, r));":      true,
		"auto v = reinterpret_tensor_wrapper(w, 2, a, b, 0L);\nRAIIAtenTensorHandle r(v);\ncpp_fused((float*)(r.data_ptr()));":                                false,
		"auto v = reinterpret_tensor_wrapper(w, 2, a, b, 0L);\nauto u = std::move(v);":                                                                        false,
		"AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_cpu__embedding_bag(w, x, &h));":                                                                               true,
		"AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_tensor_copy_(x, w));":                                                                                         false,
		"AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_cpu_set__source_Tensor(w, x));":                                                                               false,
		"output_handles[0] = w.release();": false,
		"aoti_torch_proxy_executor_call_function(proxy, 0, 1, x, 2, std::vector<AtenTensorHandle>{x, w}.data());": false,
		"cpp_fused_0((const float*)(ww.data_ptr()), (float*)(w_1.data_ptr()));":                                   true,
	} {
		if got := ParseSource([]byte(head + line)).Constants[0].ReadOnly; got != want {
			t.Errorf("%s: read only %v, want %v", line, got, want)
		}
	}
}

// thing is an input for checks.
type thing struct {
	shape  ir.Shape
	device ir.Device
}

func (t thing) Shape() ir.Shape   { return t.shape }
func (t thing) Device() ir.Device { return t.device }

func things(shapes ...ir.Shape) []thing {
	out := make([]thing, len(shapes))
	for i, s := range shapes {
		out[i] = thing{shape: s}
	}
	return out
}

func TestCheck(t *testing.T) {
	s := ParseSource([]byte(sampleSource))
	f := func(dims ...int) ir.Shape { return ir.MakeShape(ir.F32, dims...) }
	n := func(dims ...int) ir.Shape { return ir.MakeShape(ir.I64, dims...) }
	b := ir.MakeShape(ir.Bool, 3, 5)
	elsewhere := things(f(4, 6, 8), n(4, 13), b)
	elsewhere[0].device = ir.Device{Type: ir.RegisterDeviceType("elsewhere")}
	for _, tc := range []struct {
		name   string
		inputs []thing
		want   string
	}{
		{"right", things(f(4, 6, 8), n(4, 13), b), ""},
		{"zero and one are allowed", things(f(1, 6, 8), n(1, 13), b), ""},
		{"too few", things(f(4, 6, 8)), "aoti: the model takes 3 inputs, got 1"},
		{"dtype", things(n(4, 6, 8), n(4, 13), b), "aoti: input 0 (arg0_1): dtype must be float32, got int64"},
		{"rank", things(f(4, 8), n(4, 13), b), "aoti: input 0 (arg0_1): rank must be 3, got 2"},
		{"fixed size", things(f(4, 6, 9), n(4, 13), b), "aoti: input 0 (arg0_1): dimension 2 must be 8, got 9"},
		{"too large", things(f(17, 6, 8), n(17, 13), b), "aoti: input 0 (arg0_1): dimension 0 must be at most 16, got 17"},
		{"too small", things(f(4, 2, 8), n(4, 5), b), "aoti: input 0 (arg0_1): dimension 1 must be at least 3, got 2"},
		{"same symbol", things(f(4, 6, 8), n(5, 13), b), "aoti: input 1 (arg1_1): dimension 0 must be 4 (s6; s21 is dimension 0 of arg0_1), got 5"},
		{"computed size", things(f(4, 6, 8), n(4, 12), b), "aoti: input 1 (arg1_1): dimension 1 must be 13 (1 + 2*s50; s50 is dimension 1 of arg0_1), got 12"},
		{"device", elsewhere, "aoti: input 0 (arg0_1): device must be cpu, got elsewhere:0"},
	} {
		err := Check(s, tc.inputs)
		switch ie := (*InputError)(nil); {
		case tc.want == "" && err != nil, tc.want != "" && (err == nil || err.Error() != tc.want):
			t.Errorf("%s: got %v, want %s", tc.name, err, tc.want)
		case err != nil && !errors.As(err, &ie):
			t.Errorf("%s: %T", tc.name, err)
		}
	}
	good := things(f(4, 6, 8), n(4, 13), b)
	if got := Strides(s, good, 0, nil); !slices.Equal(got, []int64{48, 8, 1}) {
		t.Errorf("strides of input 0: %v", got)
	}
	if got := Strides(s, good, 2, nil); !slices.Equal(got, []int64{1, 3}) {
		t.Errorf("strides of input 2: %v", got)
	}
	if a := testing.AllocsPerRun(100, func() {
		if Check(s, good) != nil {
			t.Error("refused")
		}
	}); a != 0 {
		t.Errorf("a check allocates %v times", a)
	}
}

// A source that says nothing makes no demands.
func TestCheckUnknown(t *testing.T) {
	s := ParseSource([]byte("inputs_info_[0].name = \"x\";\n"))
	if err := Check(s, things(ir.MakeShape(ir.F32, 1, 2, 3))); err != nil {
		t.Error(err)
	}
	if got := s.Inputs[0].String(); got != "x: ?[?]" {
		t.Errorf("it prints as %q", got)
	}
	s = ParseSource([]byte("inputs_info_[0].name = \"x\";\ncpp_fused_0((const half*)(x.data_ptr()), (float*)(buf0.data_ptr()));\n"))
	if got := s.Inputs[0]; got.DType != ir.F16 || got.Known {
		t.Errorf("from a kernel's cast: %v", got.String())
	}
}

func TestExpr(t *testing.T) {
	symbol := func(name string) (int, bool) {
		i := slices.Index([]string{"s0", "s1", "u2"}, name)
		return i, i >= 0
	}
	values := []int64{3, 5, unbound}
	for _, tc := range []struct {
		text string
		want int64
		ok   bool
	}{
		{"8L", 8, true}, {"-4", -4, true}, {"s0*s1", 15, true}, {"1L + 2L*s1", 11, true}, {"(s0 + 1L)*(s1 - 1)", 16, true},
		{"2L*(((s0)))", 6, true}, {"9223372036854775807", math.MaxInt64, true},
		{"-s1 + 10", 5, true},
		{"u2 + 1", 0, false},                        // no value
		{"s0*9000000000", 0, false},                 // too large for a size
		{"s0 + 9223372036854775807", 0, false},      // overflow
		{"99999999999999999999", 0, false},          // no number
		{"c10::div_floor_integer(s0, 2)", 0, false}, // not understood
		{"s9", 0, false}, {"", 0, false}, {"s0 +", 0, false}, {"(s0", 0, false}, {"s0 s1", 0, false}, {"8x", 0, false},
		{strings.Repeat("(", 500) + "1" + strings.Repeat(")", 500), 0, false},
		{strings.Repeat("-", 900) + "1", 0, false},
		{strings.Repeat("1+", 600) + "1", 0, false},
	} {
		e := parseExpr(tc.text, symbol)
		var got int64
		ok := e != nil
		if ok {
			got, ok = e.eval(values)
		}
		if ok != tc.ok || ok && got != tc.want {
			t.Errorf("%.40s = %d, %v; want %d, %v", tc.text, got, ok, tc.want, tc.ok)
		}
	}
}

func TestTorchName(t *testing.T) {
	for _, d := range ir.DTypes() {
		if name := TorchName(d); torchDTypes[name] != d {
			t.Errorf("%v is %q in PyTorch", d, name)
		}
	}
}

func FuzzParseSource(f *testing.F) {
	f.Add([]byte(sampleSource))
	f.Add([]byte("in_spec_ = \"[\\\"a\\\"]\";\ninputs_info_[0].name = \"x\";\nassert_size_stride(x, {s0, }, {1L, }, \"input\"); }\n"))
	f.Fuzz(func(t *testing.T, src []byte) {
		s := ParseSource(src)
		inputs := make([]thing, len(s.Inputs))
		for i := range inputs {
			dims := make([]int, min(len(s.Inputs[i].Dims), ir.MaxRank))
			inputs[i] = thing{shape: ir.MakeShape(max(s.Inputs[i].DType, ir.Bool), dims...)}
			_ = s.Inputs[i].String()
		}
		if Check(s, inputs) == nil {
			for i := range inputs {
				Strides(s, inputs, i, nil)
			}
		}
	})
}

func TestExampleShapes(t *testing.T) {
	s := ParseSource([]byte(sampleSource))
	for _, tc := range []struct {
		sizes map[string]int64
		want  string
	}{
		{nil, "[f32[8,8,8] i64[8,17] bool[3,5]]"},
		{map[string]int64{"s50": 4, "s21": 2}, "[f32[2,4,8] i64[2,9] bool[3,5]]"},
		{map[string]int64{"s21": 99}, "dimension 0 must be at most 16, got 99"},
		{map[string]int64{"s6": 3}, "must be 8 (s6; s21 is"},
		{map[string]int64{"s9": 3}, `no dynamic size "s9"`},
	} {
		shapes, err := s.ExampleShapes(tc.sizes)
		got := fmt.Sprint(shapes)
		if err != nil {
			got = err.Error()
		}
		if !strings.Contains(got, tc.want) {
			t.Errorf("%v: %s, want %s", tc.sizes, got, tc.want)
		}
	}
}
