package export

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/pt2"
)

// rootOf returns the root folder of the archive for a version of PyTorch: 2.6 expects none, later ones a name.
func rootOf(torch, model string) (string, error) {
	if torch == "" {
		return model, nil
	}
	major, minor, ok := strings.Cut(torch, ".")
	minor, _, _ = strings.Cut(minor, ".")
	n, err := strconv.Atoi(minor)
	if !ok || major != "2" || err != nil || n < 6 {
		return "", fmt.Errorf("%w: there is no archive for PyTorch %q: 2.6 and later are known", ir.ErrArg, torch)
	}
	if n == 6 {
		return "", nil
	}
	return model, nil
}

// archive writes the package.
func (m *model) archive(w io.Writer, lib *library) error {
	meta, err := json.Marshal(map[string]string{
		"AOTI_DEVICE_KEY": m.device, "LORIS_ISA": lib.isa, "LORIS_PROGRAM": m.hash.String(), "LORIS_PACKAGE": strconv.Itoa(wordsVersion),
	})
	if err != nil {
		return fmt.Errorf("export: %w", err)
	}
	stem := "data/aotinductor/" + m.name + "/" + m.name + ".wrapper"
	members := []pt2.NewMember{
		pt2.MemberOf("archive_format", []byte("pt2")),
		pt2.MemberOf("archive_version", []byte("0")),
		pt2.MemberOf(".data/version", []byte("6\n")),
		pt2.MemberOf("byteorder", []byte("little")),
		pt2.MemberOf(stem+".cpp", []byte(m.source())),
		pt2.MemberOf(stem+"_metadata.json", meta),
		{Name: stem + ".so", Size: lib.size, Write: lib.write},
	}
	if m.root == "" {
		members[2] = pt2.MemberOf("version", []byte("6\n"))
	}
	return pt2.WriteArchive(w, m.root, members)
}

// torchNames are PyTorch's names of the dtypes.
var torchNames = map[ir.DType]string{
	ir.U8: "uint8", ir.I8: "int8", ir.I16: "int16", ir.I32: "int32", ir.I64: "int64", ir.F16: "float16", ir.F32: "float32", ir.F64: "float64",
	ir.C64: "complex64", ir.C128: "complex128", ir.Bool: "bool", ir.BF16: "bfloat16",
}

// deviceTypes are PyTorch's numbers of devices.
var deviceTypes = map[string]int{deviceCPU: 0, deviceCUDA: 1}

var torchKinds = map[backend.ConstantType]string{backend.ConstantParameter: "Parameter", backend.ConstantBuffer: "Buffer"}

// source returns the text that goes with the library, from which inspectors read what it takes:
// statements as Inductor writes them, though nothing was compiled from it.
func (m *model) source() string {
	var b strings.Builder
	b.WriteString("// Written by Loris. The library beside it was not compiled from this text, which tells what it takes.\n")
	for i := range m.inputs {
		fmt.Fprintf(&b, "inputs_info_[%d].name = %q;\n", i, m.inputs[i].name)
	}
	for i := range m.outputs {
		fmt.Fprintf(&b, "outputs_info_[%d].name = %q;\n", i, m.outputs[i].name)
	}
	for i := range m.constants {
		c := &m.constants[i]
		at := fmt.Sprintf("constants_info_[%d].", i)
		fmt.Fprintf(&b, "%sname = %q;\n", at, c.name)
		fmt.Fprintf(&b, "%sdtype = static_cast<int32_t>(cached_torch_dtype_%s);\n", at, torchNames[c.shape.DType()])
		fmt.Fprintf(&b, "%sdevice_type = static_cast<int32_t>(cached_torch_device_type_%s);\n", at, m.device)
		fmt.Fprintf(&b, "%soffset = 0;\n%sdata_size = %d;\n%sfrom_folded = false;\n", at, at, len(c.data), at)
		fmt.Fprintf(&b, "%stype = static_cast<int32_t>(torch::aot_inductor::ConstantType::%v);\n", at, torchKinds[c.kind()])
		fmt.Fprintf(&b, "%sshape = {%s};\n%sstride = {%s};\n", at, numbers(c.shape.Dims()), at, numbers(strides(c.shape)))
		fmt.Fprintf(&b, "%soriginal_fqn = %q;\n", at, c.fqn)
	}
	for _, a := range m.assigned { // nobody may share what is written
		q, _ := a.target(m)
		fmt.Fprintf(&b, "AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_copy_(%s, result%d, 0));\n", q.name, a.result)
	}
	fmt.Fprintf(&b, "in_spec_ = R\"(%s)\";\nout_spec_ = R\"(%s)\";\n", m.inSpec(), m.outSpec())
	for i := range m.inputs {
		q := &m.inputs[i]
		fmt.Fprintf(&b, "int32_t %s_expected_dtype = aoti_torch_dtype_%s();\nint32_t %s_expected_device_type = %d;\n", q.name, torchNames[q.shape.DType()], q.name, deviceTypes[m.device])
		steps := strides(q.shape)
		dense := true
		for d, n := range slices.Backward(q.shape.Dims()) {
			if dense {
				fmt.Fprintf(&b, "if (%d != %s_stride[%d]) {\n", steps[d], q.name, d)
			}
			if s := m.symbolAt(i, d); s != nil {
				fmt.Fprintf(&b, "if (%s_size[%d] < %d) {\nif (%s_size[%d] > %d) {\n", q.name, d, s.Min, q.name, d, s.Max)
				dense = false
				continue
			}
			fmt.Fprintf(&b, "if (%d != %s_size[%d]) {\n", n, q.name, d)
		}
	}
	return b.String()
}

func strides(s ir.Shape) []int {
	steps := s.Strides()
	return append([]int(nil), steps[:s.Rank()]...)
}

func numbers(list []int) string {
	var b strings.Builder
	for i, n := range list {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(strconv.Itoa(n))
	}
	return b.String()
}

// leaf is the spec of one tensor in PyTorch's notation of nested arguments.
const leaf = `{"type": null, "context": null, "children_spec": []}`

// inSpec returns how inputs nest: positional arguments, and no others.
func (m *model) inSpec() string {
	args := tuple(len(m.inputs))
	return `[1, {"type": "builtins.tuple", "context": "null", "children_spec": [` + args + `, {"type": "builtins.dict", "context": "[]", "children_spec": []}]}]`
}

// outSpec returns how outputs nest: one is a tensor, several are a tuple.
func (m *model) outSpec() string {
	if len(m.outputs) == 1 {
		return "[1, " + leaf + "]"
	}
	return "[1, " + tuple(len(m.outputs)) + "]"
}

func tuple(n int) string {
	leaves := strings.TrimSuffix(strings.Repeat(leaf+", ", n), ", ")
	return `{"type": "builtins.tuple", "context": "null", "children_spec": [` + leaves + `]}`
}
