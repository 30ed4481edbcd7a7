package repository

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/loris-ml/loris/serve/internal/inference"
)

// allowList are the digests that packages may have; nil allows all.
type allowList struct{ digests map[string]bool }

func newAllowList(digests []string) (*allowList, error) {
	if digests == nil {
		return nil, nil
	}
	a := &allowList{map[string]bool{}}
	for _, d := range digests {
		if b, err := hex.DecodeString(d); err != nil || len(b) != sha256.Size {
			return nil, badf("%q is no sha256 in hexadecimal", d)
		}
		a.digests[strings.ToLower(d)] = true
	}
	return a, nil
}

// check reads a package and compares its digest. Who may write to the file may change it
// afterwards: the folder must be the operator's.
func (a *allowList) check(path string) error {
	if a == nil {
		return nil
	}
	f, err := describeFile(path)
	if err != nil {
		return err
	}
	if !a.digests[f.SHA256] {
		return inference.Errorf(inference.PermissionDenied, "%s has the sha256 %s, which is not allowed", path, f.SHA256)
	}
	return nil
}
