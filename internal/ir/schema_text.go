package ir

import (
	"fmt"
	"strconv"
	"strings"
)

// String returns the schema in the notation that ParseSchema reads.
func (s *Schema) String() string {
	var b strings.Builder
	b.WriteString(s.Name + "(")
	kwOnly := false
	for i := range s.Params {
		p := &s.Params[i]
		if i > 0 {
			b.WriteString(", ")
		}
		if p.KwOnly && !kwOnly {
			b.WriteString("*, ")
			kwOnly = true
		}
		b.WriteString(p.Type + " " + p.Name)
		if p.HasDef {
			b.WriteString("=" + defaultText(p.Default))
		}
	}
	return b.String() + ") -> " + s.returnsText()
}

func (s *Schema) returnsText() string {
	if len(s.Returns) == 1 {
		if s.Returns[0] == "*" {
			return "Tensor[]"
		}
		return "Tensor"
	}
	outs := make([]string, len(s.Returns))
	for i, name := range s.Returns {
		outs[i] = "Tensor " + name
	}
	return "(" + strings.Join(outs, ", ") + ")"
}

// defaultText writes a default as ATen does: None, True and 'text'.
func defaultText(v any) string {
	switch v := v.(type) {
	case nil:
		return "None"
	case bool:
		if v {
			return "True"
		}
		return "False"
	case string:
		return "'" + v + "'"
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	case []int:
		return strings.ReplaceAll(fmt.Sprint(v), " ", ", ")
	}
	return fmt.Sprint(v)
}
