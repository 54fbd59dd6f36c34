// Logits, their loss and its gradient: of a whole vocabulary, or of one that comes in parts. See
// ops.h.
//
// Threads  Values.

#pragma once

#include "core/device/tensor.h"

#include <cstdint>

namespace mr {

// x = cap tanh(x / cap), in place
struct SoftcapArgs {
    TensorView x;     // any shape, F32
    float cap = 0.0F; // above 0
};

// Per row: loss = logsumexp(logits) - logits[target], gradLogits = scale (softmax - onehot). target
// < 0: the row is not trained, loss 0, gradient 0. Where softcap() made the logits, the gradient is
// that of its input: times 1 - (logits / softcap)^2.
struct CrossEntropyArgs {
    TensorView logits;     // (C, V), F32
    TensorView targets;    // (C), I32, -1 or in [0, V)
    TensorView losses;     // (C), F32
    TensorView gradLogits; // (C, V), A; data null: only the losses; may be logits if A is F32
    float scale = 1.0F;    // 1 / trained tokens of the whole optimizer step
    float softcap = 0.0F;  // 0: none
};

// The softmax of rows whose vocabulary comes in parts: the largest logit of one part, and the sum
// of exponentials under it, as column `part` of `tops` and `sums`.
struct SoftmaxPartArgs {
    TensorView logits;       // (C, n), F32: columns [first, first + n) of V
    TensorView targets;      // (C), I32: as in CrossEntropyArgs
    TensorView tops;         // (C, parts), F32
    TensorView sums;         // (C, parts), F32
    TensorView targetLogits; // (C), F32: written where the target is in this part
    std::int64_t part = 0;
    std::int64_t first = 0;
};

// All parts together: top = the largest of tops; total = the sum over parts, ascending, of
// sums exp(tops - top); loss = log(total) + (top - targetLogit), 0 without a target.
struct JoinSoftmaxArgs {
    TensorView tops; // these four: of SoftmaxPartArgs
    TensorView sums;
    TensorView targets;
    TensorView targetLogits;
    TensorView top;    // (C), F32
    TensorView total;  // (C), F32
    TensorView losses; // (C), F32
};

// gradLogits of CrossEntropyArgs, columns [first, first + n).
struct SoftmaxGradientArgs {
    TensorView logits;  // (C, n), F32
    TensorView targets; // (C), I32
    TensorView top;     // (C), F32: of JoinSoftmaxArgs
    TensorView total;
    TensorView gradLogits; // (C, n), A; may be logits if A is F32
    std::int64_t first = 0;
    float scale = 1.0F;
    float softcap = 0.0F;
};

} // namespace mr
