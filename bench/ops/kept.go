package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// kept is the file of --rows: the rows of this run and of those before it, one in a line, each
// written when it is known. A row that was measured again stands there twice, and the last counts.
type kept struct {
	file *os.File
	rows map[string]row // by row.String
}

// openKept reads the rows that a file has, if there is one.
func openKept(path string) (*kept, error) {
	k := &kept{rows: map[string]row{}}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	k.file = f
	whole, lines := int64(0), bufio.NewReader(f)
	for {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, errors.Join(err, f.Close())
		}
		var r row
		if err := json.Unmarshal(line, &r); err != nil {
			return nil, errors.Join(&fs.PathError{Op: "read", Path: path, Err: err}, f.Close())
		}
		k.rows[r.String()] = r
		whole += int64(len(line))
	}
	// A run that was killed can have left a part of a line, which goes.
	if err := f.Truncate(whole); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if _, err := f.Seek(whole, io.SeekStart); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return k, nil
}

func (k *kept) add(r row) error {
	line, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if _, err := k.file.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("keeping a row: %w", err)
	}
	return nil
}
