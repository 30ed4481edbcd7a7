package pt2

import (
	"fmt"
	"strings"

	"github.com/loris-ml/loris/internal/escape"
)

// FormatError says that a package, or a member of it, is not what it should be:
// damaged, not of this kind, or made to mislead.
type FormatError struct {
	// Path is the file or folder; empty for a package read from memory.
	Path string
	// Member is the archive member or the file inside the folder; empty where the
	// package as a whole is meant.
	Member string
	// Problem is what is wrong.
	Problem string
	// Err is the error below, if there is one.
	Err error
}

// Error names the package, the member and the problem.
func (e *FormatError) Error() string {
	var b strings.Builder
	b.WriteString("pt2: ")
	for _, s := range []string{e.Path, e.Member} {
		if s != "" {
			b.WriteString(s)
			b.WriteString(": ")
		}
	}
	b.WriteString(e.Problem)
	if e.Err != nil {
		b.WriteString(": ")
		b.WriteString(e.Err.Error())
	}
	return escape.Text(b.String())
}

// Unwrap returns the error below.
func (e *FormatError) Unwrap() error { return e.Err }

// TargetError says that a model was compiled for something that this process
// does not have.
type TargetError struct {
	// Path and Model name the package and the model inside it.
	Path, Model string
	// Need is what was compiled for and Have what is here ("AVX512", "AVX2").
	Need, Have string
	// Missing names the missing features, platform or device.
	Missing []string
	// What is the kind of requirement: "device", "platform", "machine" or
	// "CPU feature".
	What string
}

// Error names the model, what it needs, and what is missing.
func (e *TargetError) Error() string {
	where := "pt2: "
	if e.Path != "" {
		where += e.Path + ": "
	}
	if e.Model != "" {
		where += fmt.Sprintf("model %q: ", e.Model)
	}
	s := where + fmt.Sprintf("compiled for %s %s", e.What, e.Need)
	if e.Have != "" {
		s += ", this process has " + e.Have
	}
	if len(e.Missing) > 0 {
		s += "; missing: " + strings.Join(e.Missing, ", ")
	}
	return escape.Text(s)
}

// problem makes a FormatError without a path; those who know path and member
// fill them in by locate.
func problem(format string, args ...any) *FormatError {
	return &FormatError{Problem: fmt.Sprintf(format, args...)}
}

// locate fills in the path and the member of a FormatError that has none.
func locate(err error, path, member string) error {
	if e, ok := err.(*FormatError); ok {
		c := *e
		if c.Path == "" {
			c.Path = path
		}
		if c.Member == "" {
			c.Member = member
		}
		return &c
	}
	return err
}
