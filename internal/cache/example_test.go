package cache_test

import (
	"context"
	"fmt"
	"os"

	"github.com/loris-ml/loris/internal/cache"
)

func ExampleComputations() {
	ctx := context.Background()
	computations := cache.NewComputations(cache.Options[string]{
		MaxCost: 1 << 20,
		Close:   func(c string) { fmt.Println("close", c) },
	})
	graph := cache.Key{Lo: 0x1234, Hi: 0x5678}
	for range 2 {
		c, source, err := computations.GetOrBuild(ctx, graph, func(ctx context.Context) (string, int64, error) {
			return "matmul+relu", 4096, nil
		})
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println("run", c.Value(), "from", source)
		c.Release()
	}
	computations.Close()
	// Output:
	// run matmul+relu from built
	// run matmul+relu from cache
	// close matmul+relu
}

func ExampleData() {
	type buffer struct{ contents string }
	data := cache.NewData[string](cache.DataOptions[*buffer]{
		Release: func(b *buffer) { fmt.Println("free", b.contents) },
	})
	host := "pixels"
	hash := cache.Key{Lo: 1, Hi: 2} // of the contents of host
	for range 2 {
		copied, ok := data.Get("cuda:0", hash, func(b *buffer) bool { return b.contents == host })
		if !ok {
			fmt.Println("upload", host)
			copied = data.Put("cuda:0", hash, &buffer{host}, int64(len(host)))
		}
		fmt.Println("use", copied.Value().contents)
		copied.Release()
	}
	data.Close()
	// Output:
	// upload pixels
	// use pixels
	// use pixels
	// free pixels
}

func ExampleDisk() {
	dir, err := os.MkdirTemp("", "loris")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	disk, err := cache.OpenDisk(dir, cache.DiskOptions{MaxBytes: 1 << 30})
	if err != nil {
		fmt.Println(err)
		return
	}
	key := cache.NewDiskKey([]byte("program @step {…}"), []byte("cpu v1 avx2"))
	if err := disk.Put(key, []byte("machine code")); err != nil {
		fmt.Println(err)
		return
	}
	code, ok, err := disk.Get(key)
	fmt.Println(string(code), ok, err)
	// Output: machine code true <nil>
}
