// Package sharedmemory takes inputs from, and puts outputs into, memory that clients on
// the same machine share with the server: Triton's extension system_shared_memory.
//
// The memory is read and written by calls on its file, and not mapped. A client may cut
// its file off, or change it while a model runs: the first would end a process that has it
// mapped, the second would have a model see what was never checked.
package sharedmemory

import (
	"errors"
	"io"
	"maps"
	"math"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/loris-ml/loris/serve/internal/inference"
)

// folder is where the system has shared memory by name.
const folder = "/dev/shm"

// maxRegions bounds how many there are, each of which holds a file open.
const maxRegions = 1024

// Region is a part of a shared memory that a client has registered.
type Region struct {
	Name   string `json:"name"`
	Key    string `json:"key"`
	Offset uint64 `json:"offset"`
	Size   uint64 `json:"byte_size"`

	file *os.File
}

// Regions are those of a server. A nil Regions offers none. Its methods are safe for
// concurrent use, and their errors are *inference.Errors.
type Regions struct {
	most int64 // bytes of all inputs of a request
	root *os.Root
	mu   sync.Mutex
	all  map[string]*Region
}

// New returns Regions that take inputs of so many bytes at most. Only Linux has them.
func New(most int64) (*Regions, error) {
	if runtime.GOOS != "linux" {
		return nil, errors.New("shared memory of clients is supported on Linux only")
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil, err
	}
	return &Regions{most: most, root: root, all: map[string]*Region{}}, nil
}

// Close gives all regions back.
func (r *Regions) Close() error {
	if r == nil {
		return nil
	}
	return errors.Join(r.Unregister(""), r.root.Close())
}

func badf(format string, args ...any) error {
	return inference.Errorf(inference.InvalidArgument, format, args...)
}

// off is the answer of a server that offers no shared memory.
func off() error {
	return inference.Errorf(inference.Unimplemented, "this server does not offer shared memory (loris serve --allow-client-shm): send tensors in requests")
}

// Register adds a region: size bytes from offset on in the shared memory of that key, as
// shm_open has it.
func (r *Regions) Register(name, key string, offset, size uint64) error {
	if r == nil {
		return off()
	}
	file := strings.TrimPrefix(key, "/")
	switch {
	case name == "":
		return badf("a region of shared memory needs a name")
	case file == "" || file == "." || file == ".." || strings.ContainsAny(file, "/\x00"):
		return badf("region %q: the key %q is no name of a shared memory", name, key)
	case size == 0 || offset > math.MaxInt64 || size > math.MaxInt64-offset:
		return badf("region %q: %d bytes from %d on are none", name, size, offset)
	}
	// Without waiting for the other end of what is a pipe.
	f, err := r.root.OpenFile(file, os.O_RDWR|syscall.O_NONBLOCK, 0)
	if err != nil {
		return badf("region %q: there is no shared memory %q that may be read and written", name, key)
	}
	info, err := f.Stat()
	if err != nil {
		_ = f.Close() // nothing was written
		return badf("region %q: %w", name, err)
	}
	if !info.Mode().IsRegular() || uint64(info.Size()) < offset+size {
		_ = f.Close() // nothing was written
		return badf("region %q: expected %d bytes from %d on in %q, which has %d", name, size, offset, key, info.Size())
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.all[name] != nil {
		err = inference.Errorf(inference.AlreadyExists, "there is a region %q of shared memory already", name)
	} else if len(r.all) >= maxRegions {
		err = inference.Errorf(inference.ResourceExhausted, "there are %d regions of shared memory, as many as there may be", maxRegions)
	}
	if err != nil {
		_ = f.Close()
		return err
	}
	r.all[name] = &Region{name, key, offset, size, f}
	return nil
}

// Unregister forgets a region, or all of them for "". One that is not there is none.
func (r *Regions) Unregister(name string) error {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	var errs []error
	for n, region := range r.all {
		if name == "" || n == name {
			errs = append(errs, region.file.Close())
			delete(r.all, n)
		}
	}
	return errors.Join(errs...)
}

// Status lists a region, or all of them for "".
func (r *Regions) Status(name string) ([]Region, error) {
	all := []Region{}
	if r != nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		for _, n := range slices.Sorted(maps.Keys(r.all)) {
			if name == "" || n == name {
				all = append(all, *r.all[n])
			}
		}
	}
	if name != "" && len(all) == 0 {
		return nil, inference.Errorf(inference.NotFound, "there is no region %q of shared memory", name)
	}
	return all, nil
}

// part is what the parameters of a tensor say: a part of a region.
type part struct {
	region       *Region
	offset, size int64 // from the beginning of the file
}

// part returns the part that parameters name.
func (r *Regions) part(tensor string, p inference.Parameters) (part, error) {
	if r == nil {
		return part{}, off()
	}
	name, ok := p[inference.SharedMemoryRegion].(string)
	if !ok {
		return part{}, badf("%s: the parameter %s is no name", tensor, inference.SharedMemoryRegion)
	}
	offset, err := bytesOf(tensor, p, offsetParameter)
	if err != nil {
		return part{}, err
	}
	size, err := bytesOf(tensor, p, sizeParameter)
	if err != nil {
		return part{}, err
	}
	r.mu.Lock()
	region := r.all[name]
	r.mu.Unlock()
	switch {
	case region == nil:
		return part{}, badf("%s: there is no region %q of shared memory", tensor, name)
	case uint64(offset) > region.Size || uint64(size) > region.Size-uint64(offset):
		return part{}, badf("%s: %d bytes from %d on are beyond the region %q, which has %d", tensor, size, offset, name, region.Size)
	}
	return part{region, int64(region.Offset) + offset, size}, nil
}

const (
	offsetParameter = "shared_memory_offset"
	sizeParameter   = "shared_memory_byte_size"
)

// bytesOf reads a parameter that is a number of bytes; the offset may be left out.
func bytesOf(tensor string, p inference.Parameters, key string) (int64, error) {
	v, ok := p[key]
	if !ok && key == offsetParameter {
		return 0, nil
	}
	n, ok := v.(int64)
	if !ok || n < 0 {
		return 0, badf("%s: the parameter %s is %v, and no number of bytes", tensor, key, v)
	}
	return n, nil
}

// read returns a copy of a part.
func (p part) read(tensor string, most int64) ([]byte, error) {
	if p.size > most {
		return nil, inference.Errorf(inference.TooLarge, "%s: %d bytes in shared memory are more than the %d that are left of what a request may have", tensor, p.size, most)
	}
	b := make([]byte, p.size)
	if _, err := io.ReadFull(io.NewSectionReader(p.region.file, p.offset, p.size), b); err != nil {
		return nil, badf("%s: reading the region %q of shared memory: %w", tensor, p.region.Name, err)
	}
	return b, nil
}

// write copies data into a part.
func (p part) write(tensor string, data []byte) error {
	if int64(len(data)) > p.size {
		return badf("%s has %d bytes, and the part of the region %q of shared memory for it %d", tensor, len(data), p.region.Name, p.size)
	}
	info, err := p.region.file.Stat()
	if err == nil && info.Size() < p.offset+p.size {
		err = errors.New("it has been cut off")
	}
	if err == nil {
		_, err = p.region.file.WriteAt(data, p.offset)
	}
	if err != nil {
		return badf("%s: writing the region %q of shared memory: %w", tensor, p.region.Name, err)
	}
	return nil
}
