package pt2

import (
	"debug/elf"
	"fmt"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sys/cpu"

	"github.com/loris-ml/loris/internal/isa"
)

// Target is what a process can run.
type Target struct {
	// Devices are the types of devices that models may be for ("cpu").
	Devices []string
	// OS and Arch are as GOOS and GOARCH.
	OS, Arch string
	// Features are the CPU's, by the names of PyTorch's instruction sets.
	Features map[string]bool
}

// HostTarget returns what this process can run on its CPU.
func HostTarget() Target {
	x, a := cpu.X86, cpu.ARM64
	return Target{
		Devices: []string{"cpu"}, OS: runtime.GOOS, Arch: runtime.GOARCH,
		Features: map[string]bool{
			"AVX2":        isa.AVX2(),
			"AVX512":      isa.AVX512(),
			"AVX512_VNNI": isa.AVX512() && x.HasAVX512VNNI,
			"AMX_TILE":    x.HasAMXTile && x.HasAMXBF16 && x.HasAMXInt8,
			"ASIMD":       a.HasASIMD,
			"NEON":        a.HasASIMD,
			"SVE":         a.HasSVE,
		},
	}
}

var machines = map[string]string{
	"x86_64": "amd64", "amd64": "amd64", "AMD64": "amd64", "aarch64": "arm64", "arm64": "arm64", "ARM64": "arm64",
	"ppc64le": "ppc64le", "s390x": "s390x", "riscv64": "riscv64",
}

var platforms = map[string]string{"linux": "linux", "linux2": "linux", "darwin": "darwin", "win32": "windows"}

var elfMachines = map[elf.Machine]string{
	elf.EM_X86_64: "amd64", elf.EM_AARCH64: "arm64", elf.EM_PPC64: "ppc64le", elf.EM_S390: "s390x", elf.EM_RISCV: "riscv64",
}

// CheckTarget tells whether the model was compiled for something that t has: its
// device, platform, machine and CPU features. The metadata is believed where it
// says something, and the library itself is asked for its machine. The error is
// a *TargetError that names what is missing.
func (m *Model) CheckTarget(t Target) error {
	refuse := func(what, need, have string, missing ...string) error {
		return &TargetError{Path: m.p.Path, Model: m.Name, What: what, Need: need, Have: have, Missing: missing}
	}
	if d := m.Metadata.Device(); d != "" && !slices.Contains(t.Devices, d) {
		return refuse("device", d, strings.Join(t.Devices, ", "), d)
	}
	if p := m.Metadata.Platform(); p != "" && platforms[p] != t.OS {
		return refuse("platform", p, t.OS)
	}
	if other := m.otherLibrary(); m.LibraryFile == "" && other != "" {
		return refuse("platform", "that of "+other, t.OS)
	}
	if mach := m.Metadata.Machine(); mach != "" && machines[mach] != t.Arch {
		return refuse("machine", mach, t.Arch)
	}
	lib, err := m.Library()
	if err != nil {
		return err
	}
	if elfMachines[lib.Machine] != t.Arch {
		return refuse("machine", fmt.Sprint(lib.Machine), t.Arch)
	}
	var missing []string
	for _, f := range m.Metadata.ISA() {
		if !t.Features[f] {
			missing = append(missing, f)
		}
	}
	if len(missing) > 0 {
		return refuse("CPU feature", strings.Join(m.Metadata.ISA(), " "), t.featureText(), missing...)
	}
	return nil
}

// featureText lists the features that t has.
func (t Target) featureText() string {
	var have []string
	for f, ok := range t.Features {
		if ok {
			have = append(have, f)
		}
	}
	if len(have) == 0 {
		return "none of PyTorch's instruction sets"
	}
	slices.Sort(have)
	return strings.Join(have, " ")
}
