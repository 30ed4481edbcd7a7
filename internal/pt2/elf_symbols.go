package pt2

import "strings"

// Class says who gives a library what it asks for.
type Class uint8

const (
	// ClassHost is the host ABI, "aoti_torch_…", that libtorch has otherwise.
	ClassHost Class = iota
	// ClassVectorMath are Sleef's vector functions.
	ClassVectorMath
	// ClassOpenMP is libgomp's part, or another OpenMP library's.
	ClassOpenMP
	// ClassSystem is what the C and C++ libraries and the linker have.
	ClassSystem
	// ClassLibtorch is libtorch's C++ interface, which only libtorch itself has.
	ClassLibtorch
	// ClassDevice is the driver or runtime of a device (CUDA).
	ClassDevice
	// ClassOptional are weak symbols of no version, which may be missing.
	ClassOptional
	// ClassOther is anything else, such as the symbols of custom ops.
	ClassOther
)

var classes = [...]string{
	"host ABI", "vector math", "OpenMP", "system", "libtorch C++", "device runtime", "optional", "other",
}

// String returns the class in words.
func (c Class) String() string { return classes[min(int(c), len(classes)-1)] }

// MarshalText returns the class in words, for JSON.
func (c Class) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// Class returns who gives an undefined symbol, by its name and its version.
func (s *Symbol) Class() Class {
	switch {
	case strings.HasPrefix(s.Name, "aoti_torch_"), strings.HasPrefix(s.Name, "aoti_record_function_"):
		return ClassHost
	case strings.HasPrefix(s.Name, "Sleef_"):
		return ClassVectorMath
	case strings.HasPrefix(s.Library, "libgomp"), hasAnyPrefix(s.Name, "GOMP_", "omp_", "__kmpc_", "kmp_"):
		return ClassOpenMP
	case hasAnyPrefix(s.Library, "libcuda.so", "libcudart"):
		return ClassDevice
	case s.Version != "", strings.HasPrefix(s.Name, "__cxa_thread_atexit"):
		return ClassSystem
	case libtorchName(s.Name):
		return ClassLibtorch
	case hasAnyPrefix(s.Name, "cuda", "cuLaunch", "cuModule", "cuFunc", "cuCtx", "cuDevice", "cuMem", "cuGet", "cuStream", "cuEvent", "cuTensorMap", "cuDriver", "cublas", "cudnn"):
		return ClassDevice
	case s.Weak:
		return ClassOptional
	case hasAnyPrefix(s.Name, "_ZNSt", "_ZNKSt", "_ZNOSt", "_ZSt", "_ZTVSt", "_ZTISt", "_ZTVNSt", "_ZTINSt", "_ZTTNSt",
		"_ZTVN10__cxxabi", "__cxa_", "__gxx_", "_Zn", "_Zd", "_Unwind_"):
		return ClassSystem
	}
	return ClassOther
}

// libtorchName reports whether a mangled name is of namespace at, c10 or torch,
// or of an old libtorch's torch functions in C.
func libtorchName(name string) bool {
	if strings.HasPrefix(name, "torch_") {
		return true
	}
	if !strings.HasPrefix(name, "_Z") {
		return false
	}
	for _, prefix := range []string{"_ZN", "_ZNK", "_ZTIN", "_ZTVN", "_ZTSN", "_ZGVN", "_ZTTN"} {
		if rest, ok := strings.CutPrefix(name, prefix); ok && hasAnyPrefix(rest, "2at", "3c10", "5torch", "5caffe2") {
			return true
		}
	}
	return false
}

func hasAnyPrefix(s string, prefixes ...string) bool {
	for _, p := range prefixes {
		if strings.HasPrefix(s, p) {
			return true
		}
	}
	return false
}
