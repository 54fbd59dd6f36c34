// The steps of one run as a value that is cheap to copy: full blocks are shared, never copied.
//
// A live run hands a new version to the window up to ten times a second; with one flat array each
// version would copy all steps. Only the last, partly filled block is copied here.
//
// Threads  A value. Copies made on one thread may be read on another.

#pragma once

#include <millrace/run_reader.h>

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

namespace mr::ui {

class StepSeries
{
public:
    static constexpr std::size_t kBlockRows = 4096;

    std::size_t size() const noexcept { return m_size; }
    bool empty() const noexcept { return m_size == 0; }
    // Precondition: index < size().
    const StepRow& operator[](std::size_t index) const noexcept
    {
        return (*m_blocks[index / kBlockRows])[index % kBlockRows];
    }
    const StepRow& back() const noexcept { return (*this)[m_size - 1]; }

    // Rows must ascend by step and lie after back(). Other copies keep their rows.
    void append(std::span<const StepRow> rows);

    // Index of the first row whose step is not less than `step`; size() if there is none.
    std::size_t lowerBound(double step) const noexcept;
    // As lowerBound(), by the time at which a step ended.
    std::size_t lowerBoundMs(double timeMs) const noexcept;

private:
    template <typename Before>
    std::size_t search(Before before) const noexcept;

    using Block = std::vector<StepRow>;
    std::vector<std::shared_ptr<const Block>> m_blocks;
    std::size_t m_size = 0;
};

} // namespace mr::ui
