// Documents of the cases of recurrent_ops.h.

#pragma once

#include "core/prove/conformance_case.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace mr::conformance {

// Lengths of documents, over and over; 0 ends the list. No length: one document.
using Lengths = std::array<std::int64_t, 5>;

// First rows of the documents, then the number of rows.
inline std::vector<std::int64_t> documentStarts(std::int64_t rows, const Lengths& lengths)
{
    std::vector<std::int64_t> starts;
    std::size_t next = 0;
    for (std::int64_t t = 0; t < rows;) {
        starts.push_back(t);
        if (lengths[next] == 0)
            next = 0;
        t = lengths[next] == 0 ? rows : t + lengths[next];
        ++next;
    }
    starts.push_back(rows);
    return starts;
}

inline Values documentFrom(const std::vector<std::int64_t>& starts)
{
    Values from;
    for (std::size_t i = 0; i + 1 < starts.size(); ++i)
        from.resize(static_cast<std::size_t>(starts[i + 1]), static_cast<double>(starts[i]));
    return from;
}

inline std::string lengthsName(const Lengths& lengths)
{
    std::string name;
    for (const std::int64_t length : lengths)
        name +=
            length == 0 ? "" : (name.empty() ? " documents of " : ", ") + std::to_string(length);
    return name;
}

inline double sigmoidOf(double x) noexcept
{
    return 1.0 / (1.0 + std::exp(-x));
}

} // namespace mr::conformance
