package safetensors

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// scanner walks JSON whose shape is fixed, the header or an index, and knows the position of
// everything it reads; encoding/json tells neither positions nor duplicates. Its work and memory
// are bounded by the length of the text.
type scanner struct {
	data  string // valid UTF-8
	pos   int
	base  int64 // position of data in its file
	depth int   // of values that are skipped

	numbers [maxRank]int64
}

func (s *scanner) fail(pos int, format string, args ...any) error {
	return &FormatError{Offset: s.base + int64(pos), Reason: fmt.Sprintf(format, args...)}
}

// unexpected reports the next byte where something else belongs.
func (s *scanner) unexpected(want string) error {
	if s.pos >= len(s.data) {
		return s.fail(s.pos, "the text ends where %s belongs", want)
	}
	r, _ := utf8.DecodeRuneInString(s.data[s.pos:])
	return s.fail(s.pos, "%q where %s belongs", r, want)
}

// peek skips white space and returns the next byte, 0 at the end.
func (s *scanner) peek() byte {
	for ; s.pos < len(s.data); s.pos++ {
		switch c := s.data[s.pos]; c {
		case ' ', '\t', '\n', '\r':
		default:
			return c
		}
	}
	return 0
}

// accept skips white space and, if it comes next, the byte c.
func (s *scanner) accept(c byte) bool {
	if s.peek() != c {
		return false
	}
	s.pos++
	return true
}

func (s *scanner) expect(c byte) error {
	if !s.accept(c) {
		return s.unexpected(strconv.QuoteRune(rune(c)))
	}
	return nil
}

// object reads an object and calls member at each value with its key and the
// key's position; member reads the value.
func (s *scanner) object(member func(key string, pos int) error) error {
	return s.sequence('{', '}', func() error {
		s.peek()
		pos := s.pos
		key, err := s.str()
		if err != nil {
			return err
		}
		if err := s.expect(':'); err != nil {
			return err
		}
		return member(key, pos)
	})
}

// array reads an array and calls element at each value, which reads it.
func (s *scanner) array(element func() error) error {
	return s.sequence('[', ']', element)
}

func (s *scanner) sequence(open, end byte, item func() error) error {
	if err := s.expect(open); err != nil {
		return err
	}
	if s.accept(end) {
		return nil
	}
	for {
		if err := item(); err != nil {
			return err
		}
		if s.accept(end) {
			return nil
		}
		if !s.accept(',') {
			return s.unexpected(fmt.Sprintf("',' or %q", end))
		}
	}
}

// integer reads a natural number of at most 63 bits.
func (s *scanner) integer() (int64, error) {
	c := s.peek()
	start := s.pos
	if c < '0' || c > '9' {
		return 0, s.unexpected("a natural number")
	}
	v := int64(0)
	for ; s.pos < len(s.data) && '0' <= s.data[s.pos] && s.data[s.pos] <= '9'; s.pos++ {
		digit := int64(s.data[s.pos] - '0')
		if v > (math.MaxInt64-digit)/10 {
			return 0, s.fail(start, "a number of more than 63 bits")
		}
		v = 10*v + digit
	}
	if c == '0' && s.pos > start+1 {
		return 0, s.fail(start, "a number with a leading zero")
	}
	return v, nil
}

// str reads a string. One without escapes shares the memory of the text.
func (s *scanner) str() (string, error) {
	if s.peek() != '"' {
		return "", s.unexpected("a string")
	}
	start := s.pos
	s.pos++
	var buf []byte // of the text up to from, once there was an escape
	from := s.pos
	for s.pos < len(s.data) {
		switch c := s.data[s.pos]; {
		case c == '"':
			text := s.data[from:s.pos]
			s.pos++
			if buf == nil {
				return text, nil
			}
			return string(append(buf, text...)), nil
		case c == '\\':
			buf = append(buf, s.data[from:s.pos]...)
			r, err := s.escape()
			if err != nil {
				return "", err
			}
			buf = utf8.AppendRune(buf, r)
			from = s.pos
		case c < ' ':
			return "", s.fail(s.pos, "control character %#02x in a string", c)
		default:
			s.pos++
		}
	}
	return "", s.fail(start, "a string without end")
}

// escape reads an escape sequence.
func (s *scanner) escape() (rune, error) {
	start := s.pos
	s.pos++
	if s.pos == len(s.data) {
		return 0, s.unexpected("an escape")
	}
	c := s.data[s.pos]
	s.pos++
	switch c {
	case '"', '\\', '/':
		return rune(c), nil
	case 'b':
		return '\b', nil
	case 'f':
		return '\f', nil
	case 'n':
		return '\n', nil
	case 'r':
		return '\r', nil
	case 't':
		return '\t', nil
	case 'u':
	default:
		return 0, s.fail(start, "an unknown escape")
	}
	r, ok := s.hex4()
	if ok && utf16.IsSurrogate(r) {
		var low rune
		if ok = strings.HasPrefix(s.data[s.pos:], `\u`); ok {
			s.pos += 2
			low, _ = s.hex4()
		}
		r = utf16.DecodeRune(r, low)
		ok = r != utf8.RuneError
	}
	if !ok {
		return 0, s.fail(start, "an escape that is no character")
	}
	return r, nil
}

// hex4 reads four hexadecimal digits.
func (s *scanner) hex4() (rune, bool) {
	if len(s.data)-s.pos < 4 {
		return 0, false
	}
	v, err := strconv.ParseUint(s.data[s.pos:s.pos+4], 16, 16)
	if err != nil {
		return 0, false
	}
	s.pos += 4
	return rune(v), true
}

// maxDepth is how deep values may nest that are skipped: the reference implementation's bound.
const maxDepth = 128

// skip reads any value.
func (s *scanner) skip() error {
	c := s.peek()
	start := s.pos
	if s.depth++; s.depth > maxDepth {
		return s.fail(start, "more than %d values in each other", maxDepth)
	}
	defer func() { s.depth-- }()
	switch {
	case c == '{':
		return s.object(func(string, int) error { return s.skip() })
	case c == '[':
		return s.array(s.skip)
	case c == '"':
		_, err := s.str()
		return err
	case c == '-' || '0' <= c && c <= '9':
		return s.skipNumber()
	}
	for _, word := range []string{"null", "true", "false"} {
		if strings.HasPrefix(s.data[s.pos:], word) {
			s.pos += len(word)
			return nil
		}
	}
	return s.fail(start, "no JSON value")
}

// skipNumber reads a number of any kind.
func (s *scanner) skipNumber() error {
	start := s.pos
	digits := func() bool {
		from := s.pos
		for s.pos < len(s.data) && '0' <= s.data[s.pos] && s.data[s.pos] <= '9' {
			s.pos++
		}
		return s.pos > from
	}
	next := func(set string) bool {
		if s.pos < len(s.data) && strings.IndexByte(set, s.data[s.pos]) >= 0 {
			s.pos++
			return true
		}
		return false
	}
	next("-")
	ok := next("0") || digits()
	if ok && next(".") {
		ok = digits()
	}
	if ok && next("eE") {
		next("+-")
		ok = digits()
	}
	if !ok {
		return s.fail(start, "no JSON number")
	}
	return nil
}
