package pt2

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
)

// folderMembers lists the files below a folder. Links inside it are followed as
// long as they stay inside.
func folderMembers(root *os.Root, lim Limits) ([]member, error) {
	var members []member
	err := fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			return nil
		}
		m, err := folderMember(root, name)
		if err != nil {
			return err
		}
		if len(members) == lim.Members {
			return problem("the folder has more than the %d files allowed", lim.Members)
		}
		members = append(members, m)
		return nil
	})
	var fe *FormatError
	if err != nil && !errors.As(err, &fe) {
		err = fmt.Errorf("pt2: read the folder: %w", err)
	}
	return members, err
}

func folderMember(root *os.Root, name string) (member, error) {
	info, err := root.Stat(name)
	if err != nil {
		return member{}, &FormatError{Member: name, Problem: "cannot be opened; links may not lead outside the folder", Err: err}
	}
	if !info.Mode().IsRegular() {
		return member{}, &FormatError{Member: name, Problem: "not a plain file"}
	}
	m := member{name: name, size: info.Size()}
	m.open = func() (io.ReadCloser, error) { return root.Open(name) }
	m.place = func() (*Section, error) {
		f, err := root.Open(name)
		if err != nil {
			return nil, &FormatError{Member: name, Problem: "cannot be opened", Err: err}
		}
		return &Section{ReaderAt: f, Size: m.size, File: f, close: f.Close}, nil
	}
	return m, nil
}

// siblingMembers lists a bare library and the files beside it that were made
// with it, which share its name up to the extension.
func siblingMembers(root *os.Root, library string) ([]member, error) {
	stem := strings.TrimSuffix(library, ".so")
	var members []member
	for _, name := range []string{library, stem + ".cpp", stem + "_metadata.json", stem + ".json", stem + "_weights.blob", stem + ".blob"} {
		if _, err := root.Lstat(name); name != library && err != nil {
			continue
		}
		m, err := folderMember(root, name)
		if err != nil {
			return nil, err
		}
		if name == library {
			name = stem + ".so"
		}
		m.name = path.Join(aotiFolder, bareModel, name)
		members = append(members, m)
	}
	return members, nil
}
