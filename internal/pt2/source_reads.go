package pt2

import (
	"slices"
	"strings"
)

// noteUses looks for uses of constants in a line of the generated functions and
// remembers those that may write: what it does not understand may. It also takes
// the element type of an input from how a kernel reads it, for sources without
// checks.
func (p *sourceParser) noteUses(s string) {
	if strings.HasPrefix(s, "//") {
		return
	}
	for at := 0; at < len(s); {
		if !wordByte(s[at]) {
			at++
			continue
		}
		start := at
		for at < len(s) && wordByte(s[at]) {
			at++
		}
		word := s[start:at]
		if i, ok := p.constants[word]; ok && p.spec.Constants[i].ReadOnly && !p.readsOnly(i, s[:start], s[at:]) {
			p.spec.Constants[i].ReadOnly = false
		}
		if i, ok := p.inputs[word]; ok && p.spec.Inputs[i].TypeName == "" {
			if typ, _, ok := dataCast(s[:start], s[at:]); ok {
				p.spec.Inputs[i].TypeName = cppTypes[typ]
			}
		}
	}
}

// readsOnly reports whether what stands around the name of constant i can't
// write it: its declaration, a string, a view under another name, a cast of its
// data to const, or an argument of a C function that does not receive results.
func (p *sourceParser) readsOnly(i int, before, after string) bool {
	if strings.HasSuffix(before, "auto& ") || strings.HasSuffix(before, "auto ") || strings.HasSuffix(before, `"`) {
		return true
	}
	if _, isConst, ok := dataCast(before, after); ok {
		return isConst
	}
	for _, wrapper := range []string{"reinterpret_tensor_wrapper(", "wrap_with_raii_handle_if_needed(", "temporary_reference("} {
		before = strings.TrimSuffix(before, wrapper)
	}
	before = strings.TrimSuffix(before, "&")
	if view, ok := strings.CutPrefix(before, "auto "); ok && strings.HasSuffix(view, " = ") {
		p.constants[strings.TrimSuffix(view, " = ")] = i // followed under its other name
		return true
	}
	if owner, ok := strings.CutPrefix(before, "RAIIAtenTensorHandle "); ok && strings.HasSuffix(owner, "(") {
		p.constants[strings.TrimSuffix(owner, "(")] = i
		return true
	}
	call, ok := strings.CutPrefix(before, "AOTI_TORCH_ERROR_CODE_CHECK(")
	function, args, ok2 := strings.Cut(call, "(")
	return ok && ok2 && !writes(function, args == "")
}

// writes reports whether a C function may write an argument, first or not. The
// first one receives the result where the name says so; few write others.
func writes(function string, first bool) bool {
	if !strings.HasPrefix(function, "aoti_torch_") {
		return true
	}
	others := []string{"tensor_copy_", "assign_tensors", "_helper", "batch_norm", "proxy_executor"}
	if slices.ContainsFunc(others, func(s string) bool { return strings.Contains(function, s) }) {
		return true
	}
	receivers := []string{"_out", "set__", "bernoulli__", "resize_"}
	return first && (strings.HasSuffix(function, "_") || slices.ContainsFunc(receivers, func(s string) bool { return strings.Contains(function, s) }))
}

// dataCast reads "(const float*)(" before and ".data_ptr()" after a name: the
// type, and whether it is const.
func dataCast(before, after string) (typ string, isConst, ok bool) {
	cast, ok := strings.CutSuffix(before, "*)(")
	if !ok || !strings.HasPrefix(after, ".data_ptr()") {
		return "", false, false
	}
	typ, isConst = strings.CutPrefix(cast[strings.LastIndexByte(cast, '(')+1:], "const ")
	return typ, isConst, true
}

// cppTypes maps the types of kernels to PyTorch's names.
var cppTypes = map[string]string{
	"float": "float32", "double": "float64", "bool": "bool", "half": "float16", "bfloat16": "bfloat16",
	"at::Half": "float16", "at::BFloat16": "bfloat16", "c10::Half": "float16", "c10::BFloat16": "bfloat16",
	"int8_t": "int8", "int16_t": "int16", "int32_t": "int32", "int64_t": "int64", "uint8_t": "uint8",
	"c10::complex<float>": "complex64", "c10::complex<double>": "complex128", "complex64": "complex64", "complex128": "complex128",
}
