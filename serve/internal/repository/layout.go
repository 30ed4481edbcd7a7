package repository

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/loris-ml/loris/serve/internal/inference"
	pb "github.com/loris-ml/loris/serve/internal/pb/inference"
)

// source says where a model comes from: a folder with versions, or one file.
type source struct {
	dir           string // of a model in a repository
	file, weights string // of a model given by itself
}

// files are those of one version.
type files struct {
	number         int64
	model, weights string
	dir            string   // of the model, with all its versions; empty for a file by itself
	others         []string // files of labels and of the tokenizer
}

// fileVersion is the version that a file by itself has.
const fileVersion = 1

// versions lists the versions that a folder has, in order. A folder whose name is no
// number without a leading zero is none.
func (s source) versions() ([]files, error) {
	if s.file != "" {
		return []files{{number: fileVersion, model: s.file, weights: s.weights}}, nil
	}
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return nil, err
	}
	var all []files
	for _, e := range entries {
		n, err := strconv.ParseInt(e.Name(), 10, 64)
		if err != nil || n < 1 || strconv.FormatInt(n, 10) != e.Name() {
			continue
		}
		all = append(all, files{number: n, dir: s.dir})
	}
	slices.SortFunc(all, func(a, b files) int { return int(min(max(a.number-b.number, -1), 1)) })
	return all, nil
}

// find fills in the files of a version.
func (s source) find(v *files, c *pb.ModelConfig) error {
	if s.file != "" {
		return nil
	}
	v.others = nil
	for _, o := range c.Output {
		if o.LabelFilename != "" {
			v.others = append(v.others, filepath.Join(s.dir, o.LabelFilename))
		}
	}
	if name := c.Parameters[paramTokenizer].GetStringValue(); filepath.IsLocal(name) {
		v.others = append(v.others, filepath.Join(s.dir, name))
	}
	dir := filepath.Join(s.dir, strconv.FormatInt(v.number, 10))
	names := []string{"model.pt2", "model.lir", "model.so"}
	if c.DefaultModelFilename != "" {
		if !filepath.IsLocal(c.DefaultModelFilename) {
			return badf("default_model_filename %q leaves the folder", c.DefaultModelFilename)
		}
		names = []string{c.DefaultModelFilename}
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	var others []string
	for _, e := range entries {
		switch strings.ToLower(filepath.Ext(e.Name())) {
		case ".pt2", ".lir", ".so":
			others = append(others, e.Name())
		}
		if e.Name() == "weights.safetensors" {
			v.weights = filepath.Join(dir, e.Name())
		}
	}
	for _, name := range names {
		if path := filepath.Join(dir, name); exists(path) {
			v.model = path
			return nil
		}
	}
	if len(others) != 1 || c.DefaultModelFilename != "" {
		return inference.Errorf(inference.NotFound, "%s has no %s, and %d other models", dir, strings.Join(names, ", "), len(others))
	}
	v.model = filepath.Join(dir, others[0])
	return nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// fingerprint changes when the files of a version or its configuration do.
type fingerprint struct{ model, weights, config string }

// fingerprint returns the sizes and times of the files, and what symbolic links lead to; config is
// left empty.
func (v files) fingerprint() (f fingerprint, err error) {
	if f.weights, err = seen(v.weights); err == nil {
		f.model, err = seen(append([]string{v.model}, v.others...)...)
	}
	return f, err
}

func seen(paths ...string) (string, error) {
	var b strings.Builder
	for _, path := range paths {
		if path == "" {
			continue
		}
		real, err := filepath.EvalSymlinks(path)
		if err != nil {
			return "", err
		}
		info, err := os.Stat(real)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&b, "%s %d %d;", real, info.Size(), info.ModTime().UnixNano())
	}
	return b.String(), nil
}

// choose returns the versions that a policy selects; the highest one without a policy.
func choose(c *pb.ModelConfig, all []files) ([]files, error) {
	switch p := c.GetVersionPolicy().GetPolicyChoice().(type) {
	case *pb.ModelVersionPolicy_All_:
		return all, nil
	case *pb.ModelVersionPolicy_Specific_:
		var chosen []files
		for _, want := range p.Specific.Versions {
			i := slices.IndexFunc(all, func(v files) bool { return v.number == want })
			if i < 0 {
				return nil, badf("version_policy: there is no version %d", want)
			}
			chosen = append(chosen, all[i])
		}
		return chosen, nil
	default:
		n := int(max(c.GetVersionPolicy().GetLatest().GetNumVersions(), 1))
		return all[max(len(all)-n, 0):], nil
	}
}
