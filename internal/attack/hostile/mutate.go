package hostile

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"io"
	"math/rand/v2"
	"slices"
	"strconv"
)

// edges are the numbers at which sizes and offsets go wrong.
var edges = []uint64{
	0, 1, 2, 7, 63, 64, 127, 128, 255, 256, 1<<15 - 1, 1 << 15, 1<<16 - 1, 1 << 16, 1<<24 + 1, 1<<31 - 1, 1 << 31,
	1<<32 - 1, 1 << 32, 1 << 40, 1 << 53, 1 << 62, 1<<63 - 1, 1 << 63, 1<<64 - 1,
}

// mutations are the ways in which Mutate damages an input, each once. other is another input of the
// same kind.
var mutations = []struct {
	name  string
	apply func(r *rand.Rand, b, other []byte) []byte
}{
	{"truncate", func(r *rand.Rand, b, _ []byte) []byte { return b[:r.IntN(len(b))] }},
	{"flip a bit", func(r *rand.Rand, b, _ []byte) []byte {
		b[r.IntN(len(b))] ^= 1 << r.IntN(8)
		return b
	}},
	{"set a byte", func(r *rand.Rand, b, _ []byte) []byte {
		b[r.IntN(len(b))] = byte(r.Uint32())
		return b
	}},
	{"set a character", func(r *rand.Rand, b, _ []byte) []byte {
		const special = "\x00\n\"'\\{}[](),:;%@#-+.eE0 \x1b\x7f\xff"
		b[r.IntN(len(b))] = special[r.IntN(len(special))]
		return b
	}},
	{"set 4 bytes", func(r *rand.Rand, b, _ []byte) []byte { return setNumber(r, b, 4) }},
	{"set 8 bytes", func(r *rand.Rand, b, _ []byte) []byte { return setNumber(r, b, 8) }},
	{"set a decimal number", setDecimal},
	{"remove a range", func(r *rand.Rand, b, _ []byte) []byte {
		i, j := span(r, b)
		return slices.Delete(b, i, j)
	}},
	{"repeat a range", func(r *rand.Rand, b, _ []byte) []byte {
		i, j := span(r, b)
		times := 1 + r.IntN(4)
		if r.IntN(8) == 0 { // many times, within maxInput
			times = (maxInput - len(b)) / (j - i)
		}
		return slices.Insert(b, j, bytes.Repeat(b[i:j], max(0, times))...)
	}},
	{"move a range", func(r *rand.Rand, b, _ []byte) []byte {
		i, j := span(r, b)
		part := slices.Clone(b[i:j])
		b = slices.Delete(b, i, j)
		return slices.Insert(b, r.IntN(len(b)+1), part...)
	}},
	{"insert of another", func(r *rand.Rand, b, other []byte) []byte {
		if len(other) == 0 {
			return b
		}
		i, j := span(r, other)
		return slices.Insert(b, r.IntN(len(b)+1), other[i:j]...)
	}},
	{"nest", func(r *rand.Rand, b, _ []byte) []byte {
		pairs := []string{"[]", "{}", "()", `{"a":`, "-", "((", `[{"a":[`}
		pair := pairs[r.IntN(len(pairs))]
		return slices.Insert(b, r.IntN(len(b)+1), bytes.Repeat([]byte(pair[:len(pair)-len(pair)/2]), 1<<r.IntN(17))...)
	}},
}

// maxInput bounds what Mutate makes, in bytes.
const maxInput = 1 << 20

// Mutate returns a damaged copy of b: one to four mutations, most often one. It is a function of the
// numbers that r gives.
func Mutate(r *rand.Rand, b, other []byte) []byte {
	b = slices.Clone(b)
	for n := 1 + min(r.IntN(6), r.IntN(4)); n > 0 && len(b) > 0; n-- {
		b = mutations[r.IntN(len(mutations))].apply(r, b, other)
	}
	return b[:min(len(b), maxInput)]
}

// span returns a range of b that is not empty.
func span(r *rand.Rand, b []byte) (i, j int) {
	i = r.IntN(len(b))
	return i, i + 1 + r.IntN(min(len(b)-i, 1<<r.IntN(10)))
}

// setNumber puts an edge, or a number near the one that is there, in the place of a little endian one.
func setNumber(r *rand.Rand, b []byte, width int) []byte {
	if len(b) < width {
		return b
	}
	at := b[r.IntN(len(b)-width+1):][:width]
	var word [8]byte
	copy(word[:], at)
	n := edges[r.IntN(len(edges))]
	if r.IntN(3) == 0 {
		n = binary.LittleEndian.Uint64(word[:]) + uint64(r.IntN(17)) - 8
	}
	binary.LittleEndian.PutUint64(word[:], n)
	copy(at, word[:])
	return b
}

// setDecimal puts an edge in the place of a number that is written out.
func setDecimal(r *rand.Rand, b, _ []byte) []byte {
	digit := func(c byte) bool { return '0' <= c && c <= '9' }
	start := r.IntN(len(b))
	i := start
	for !digit(b[i]) {
		if i = (i + 1) % len(b); i == start {
			return b
		}
	}
	j := i
	for j < len(b) && digit(b[j]) {
		j++
	}
	n := edges[r.IntN(len(edges))]
	text := strconv.FormatUint(n, 10)
	switch r.IntN(6) {
	case 0:
		text = strconv.FormatInt(int64(n), 10)
	case 1:
		text += "." + strconv.Itoa(r.IntN(100))
	case 2:
		text += "e" + strconv.Itoa(r.IntN(400))
	}
	return slices.Replace(b, i, j, []byte(text)...)
}

// mutateMember damages one member of a zip archive and makes the archive anew, with sizes and
// checksums that are right: what a hostile program would write.
func mutateMember(r *rand.Rand, b, other []byte) []byte {
	z, err := zip.NewReader(bytes.NewReader(b), int64(len(b)))
	if err != nil || len(z.File) == 0 {
		return Mutate(r, b, other)
	}
	victim := r.IntN(len(z.File))
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for i, f := range z.File {
		data, err := member(f)
		if err != nil {
			return Mutate(r, b, other)
		}
		name := f.Name
		if i == victim {
			if r.IntN(8) == 0 {
				name = string(Mutate(r, []byte(name), []byte("../../x")))
			} else {
				data = Mutate(r, data, other)
			}
		}
		to, err := w.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Store})
		if err != nil {
			return b
		}
		to.Write(data)
	}
	w.Close()
	return out.Bytes()
}

func member(f *zip.File) ([]byte, error) {
	r, err := f.Open()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(r)
}
