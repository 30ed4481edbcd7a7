package command

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/loris-ml/loris/internal/graph"
)

// maxProgram bounds the text of a program, so that a wrong file is refused
// before it fills memory.
const maxProgram = 256 << 20

// ReadProgram parses the program at path, or that of standard input for "-". A
// mistake in the text is a *sourceError.
func ReadProgram(c *cobra.Command, path string) (*graph.Program, error) {
	r, name := c.InOrStdin(), "<stdin>"
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		r, name = f, path
	}
	text, err := io.ReadAll(io.LimitReader(r, maxProgram+1))
	if err != nil {
		return nil, err
	}
	if len(text) > maxProgram {
		return nil, fmt.Errorf("%s: a program of more than %d bytes", name, maxProgram)
	}
	p, err := graph.Parse(string(text))
	var bad *graph.ParseError
	if errors.As(err, &bad) {
		return nil, &sourceError{name, bad}
	}
	return p, err
}

// ProgramArgs completes the names of program files.
func ProgramArgs(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return []string{"lir"}, cobra.ShellCompDirectiveFilterFileExt
}

// sourceError is a mistake in a program's text; it stands alone on its line, so
// that editors find the place.
type sourceError struct {
	path string
	err  *graph.ParseError
}

func (e *sourceError) Error() string { return e.path + ":" + e.err.Error() }

func (e *sourceError) Unwrap() error { return e.err }
