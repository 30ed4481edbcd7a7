// Package bf16 writes VDPBF16PS, which neither avo nor Go's assembler knows, into
// assembly that avo has written.
package bf16

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
)

// Suffix ends the names of the functions whose products are of pairs of bfloat16.
const Suffix = "BF16AVX512"

var placeholder = regexp.MustCompile(`^\tVPDPWSSD\s+Z(\d+), Z(\d+), Z(\d+)$`)

// Encode writes VDPBF16PS as bytes where functions with the Suffix have VPDPWSSD: the
// two differ in one field of the prefix.
func Encode(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	lines := strings.Split(string(text), "\n")
	inside := false
	for i, line := range lines {
		if strings.HasPrefix(line, "TEXT ") {
			inside = strings.Contains(line, Suffix+"(SB)")
		}
		m := placeholder.FindStringSubmatch(line)
		if m == nil || !inside {
			continue
		}
		var r [3]int
		for j := range r {
			if r[j], err = strconv.Atoi(m[j+1]); err != nil {
				return err
			}
		}
		code := vdpbf16ps(r[2], r[1], r[0])
		lines[i] = fmt.Sprintf("\t// VDPBF16PS Z%d, Z%d, Z%d\n\tLONG $0x%02x%02x%02x%02x\n\tWORD $0x%02x%02x", r[0], r[1], r[2], code[3], code[2], code[1], code[0], code[5], code[4])
	}
	return os.WriteFile(path, []byte(strings.Join(lines, "\n")), 0o644)
}

// vdpbf16ps returns the code of the instruction on 512-bit registers: EVEX.512.F3.0F38.W0 52 /r.
func vdpbf16ps(dst, x, y int) [6]byte {
	no := func(r, bit int) byte { return byte(^r >> bit & 1) }
	return [6]byte{
		0x62,
		no(dst, 3)<<7 | no(y, 4)<<6 | no(y, 3)<<5 | no(dst, 4)<<4 | 2,
		byte(^x&15)<<3 | 1<<2 | 2,
		2<<5 | no(x, 4)<<3,
		0x52,
		3<<6 | byte(dst&7)<<3 | byte(y&7),
	}
}
