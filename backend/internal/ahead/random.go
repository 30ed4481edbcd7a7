package ahead

import (
	"github.com/loris-ml/loris/internal/ahead"
	"github.com/loris-ml/loris/internal/strided"
)

// drawn calls a function that draws numbers from the host's generator. Those that a Program draws by a
// seed of the caller's must be the same on every backend, which that generator's are not.
func (c *call) drawn(function string, args ...ahead.Arg) {
	if int(c.Instr.Args[0]) != c.e.seed {
		c.unsupported("its seed is a value of the program, and packages draw by the generator of the process")
		return
	}
	s := c.Shapes[0]
	code, ok := ahead.TypeCode(s.DType())
	if !ok {
		c.unsupported("numbers of %v cannot be drawn", s.DType())
		return
	}
	sizes := list(s.Dims())
	args = append(args, sizes, ahead.Int(len(sizes)))
	if function != randint {
		args = append(args, ahead.Int(0)) // the default generator
	}
	const layout, device, index, pin = ahead.Int(0), ahead.Int(0), ahead.Int(0), ahead.Int(0) // the defaults
	c.emit(function, 0, append(args, ahead.List{code}, layout, device, index, pin, c.returned(strided.Dense(s.Dims())))...)
}

const randint = "aoti_torch_cpu_randint_low"

func (c *call) uniform() { c.drawn("aoti_torch_cpu_rand_generator") }
func (c *call) normal()  { c.drawn("aoti_torch_cpu_randn_generator") }

func (c *call) randint() {
	_, low := c.Number("low")
	_, high := c.Number("high")
	c.drawn(randint, ahead.Int(low), ahead.Int(high))
}
