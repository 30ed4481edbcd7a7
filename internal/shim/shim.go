// Package shim reads the list of the functions of PyTorch's C shim, by which
// artefacts call their host: aoti/internal/host/symbols.txt. The generator of the C stubs
// and the host that the stubs call number the functions by its lines, and must
// agree about what each of them is.
package shim

import "strings"

// Prefix begins the name of every function.
const Prefix = "aoti_torch_"

// Param is an argument of a function: its name and its kind, such as "tensor?".
type Param struct{ Name, Kind string }

// Function is a function of the list.
type Function struct {
	// Header is the header of PyTorch that declares it; with ":cuda" if it is
	// there for CUDA only.
	Header string
	Name   string // with Prefix
	Result string // the kind of what it returns
	Params []Param
}

// Parse reads the list. The result has an element for each line, an empty one
// for a line that is a comment or no function.
func Parse(text string) []Function {
	var out []Function
	for line := range strings.Lines(text) {
		var f Function
		if words := strings.Fields(line); len(words) >= 3 && words[0] != "#" {
			f.Header, f.Name, f.Result = words[0], words[1], words[2]
			for _, arg := range words[3:] {
				name, kind, _ := strings.Cut(arg, ":")
				f.Params = append(f.Params, Param{name, kind})
			}
		}
		out = append(out, f)
	}
	return out
}

// Math says that a function computes something, and therefore has a C stub that
// calls Go: it belongs to the headers of ops, or is one of the few others that
// do.
func (f *Function) Math() bool {
	switch f.Header {
	case "c_shim_cpu.h", "c_shim_cuda.h", "c_shim_aten.h", "shim_cpu.h", "shim_deprecated.h", "shim_deprecated.h:cuda":
		return true
	}
	for _, part := range []string{"_mm_plus_mm_out", "scatter_out", "scatter_reduce_out", "index_put_out", "_wrapped_", "_fbgemm_"} {
		if strings.Contains(f.Name, part) {
			return true
		}
	}
	return false
}
