// Every function of one width. The file that includes this one sets the target and
// includes the width's vec_*.h before.

#include "base.h"

#include "dd.h"

#include "f64_exp.h"
#include "f64_log.h"
#include "f64_trig.h"
#include "f64_special.h"
#include "f64_misc.h"

#include "f32_fast.h"
#include "f32_light.h"
#include "f32_trig.h"
