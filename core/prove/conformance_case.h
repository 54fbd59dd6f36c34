// Tools of a conformance case: uploads of random numbers, the op call, expectations.
//
// A case function runs twice on two CaseRuns with the same seed; the bytes both downloaded must
// be equal. After the first failure every call does nothing, so a case has no error paths.
//
// Threads  One.
// Ownership The run owns the memory of its tensors.

#pragma once

#include "core/device/device.h"
#include "core/device/ops.h"

#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace mr::conformance {

// Unit roundoffs: half a unit in the last place, relative.
inline constexpr double kU = 1.0 / (1 << 24);    // F32
inline constexpr double kUBf16 = 1.0 / (1 << 8); // BF16

// runCase() draws inputs by it.
inline constexpr unsigned kCaseSeed = 20250117;

inline double unitOf(DType type) noexcept
{
    return type == DType::BF16 ? kUBf16 : kU;
}

// Nearest even, NaN aside.
float roundToBf16(float x) noexcept;

inline float roundTo(DType type, float x) noexcept
{
    return type == DType::BF16 ? roundToBf16(x) : x;
}

using Values = std::vector<double>;
using Dims = std::vector<std::int64_t>;

// A tensor on the device and its content.
struct Input {
    TensorView view;
    Values values;

    double operator()(std::int64_t i) const { return values[static_cast<std::size_t>(i)]; }
    const double* at(std::int64_t i) const { return values.data() + i; }
};

class CaseRun
{
public:
    CaseRun(Device& device, unsigned seed);

    // From here on tensors start one element past an aligned address; those of U8, which hold
    // StepScalars, do not.
    void startOneElementLate() noexcept { m_lateElements = 1; }

    // Normal numbers times `spread`, as they are after rounding to `type` (F32, BF16).
    Input random(DType type, const Dims& dims, double spread = 1.0);
    // As random(), from 65,521 numbers that repeat: for tensors so large that making each number
    // would take longer than the op.
    Input repeated(DType type, const Dims& dims);
    // These values, converted to `type` (any).
    Input given(DType type, const Dims& dims, const Values& values);
    // Memory filled with bytes 0xFF (NaN, -1), so that elements an op does not write show.
    TensorView blank(DType type, const Dims& dims);

    Ops& ops() { return m_device.ops(); }

    Stream& stream() { return *m_stream; }

    // An F32 tensor as flat BF16, rounded by finishGradient().
    TensorView rounded(const TensorView& sum);

    // Takes the status of an op call and waits for the op.
    void call(const Status& enqueued);

    // Downloads and compares; tolerance 0 wants equal values.
    void expect(
        const char* what, const TensorView& view, const Values& want, const Values& tolerance);
    // Compares some places; all bytes count for the comparison of two runs.
    void expectAt(const char* what, const TensorView& view, const std::vector<std::int64_t>& places,
        const Values& want, const Values& tolerance);
    void expectExactly(const char* what, const TensorView& view, const Values& want);
    // Expects the bits of another tensor of the device (F32, BF16).
    void expectSame(const char* what, const TensorView& view, const TensorView& want);

    const Status& status() const noexcept { return m_status; }

    double error() const noexcept { return m_error; }

    const std::string& worst() const noexcept { return m_worst; }

    const std::vector<std::byte>& bytes() const noexcept { return m_bytes; }

    // XXH3-64 of all results in hexadecimal, to compare with another device: which NaN an operation
    // makes is the processor's choice, so all count as one.
    std::string digest() const;

private:
    std::vector<std::byte> download(const TensorView& view);
    Buffer allocate(std::size_t bytes, MemoryKind kind);
    TensorView unset(DType type, const Dims& dims);
    std::span<std::byte> stage(std::size_t bytes);
    // fill(bytes) writes them.
    template <typename Fill>
    void upload(const TensorView& view, Fill fill);
    void finish();

    Device& m_device;
    std::mt19937_64 m_engine;
    std::size_t m_lateElements = 0;
    std::unique_ptr<Stream> m_stream;
    std::unique_ptr<Event> m_event;
    std::vector<Buffer> m_owned;
    Buffer m_stage;
    Status m_status;
    double m_error = 0.0;
    std::string m_worst;
    std::vector<std::byte> m_bytes;                     // all expected tensors
    std::vector<std::pair<DType, std::size_t>> m_types; // ... and the bytes of each
};

// One line of the table.
struct Case {
    std::string op;
    std::string name;
    std::function<void(CaseRun&)> run;
};

using Table = std::vector<Case>;

void addMatrixCases(Table& table);
void addAttentionCases(Table& table);
void addRowCases(Table& table);
void addHeadCases(Table& table);
void addLossCases(Table& table);
void addLookupCases(Table& table);
void addColumnCases(Table& table);
void addCopyCases(Table& table);
void addElementCases(Table& table);
void addUpdateCases(Table& table);
void addCompactCases(Table& table);
void addInputCases(Table& table);
void addLightCases(Table& table);
void addProjectionCases(Table& table);
void addLightUpdateCases(Table& table);
void addChosenRowCases(Table& table);
void addFp8Cases(Table& table);
void addDoraCases(Table& table);
void addConvCases(Table& table);
void addDeltaCases(Table& table);
void addGatedCases(Table& table);

// All of them.
Table wholeTable();

void addModelSizeProductCases(Table& table);
void addModelSizeRowCases(Table& table);
void addModelSizeLossCases(Table& table);

// Products, rows and losses at the sizes of models. Half a minute on two processor cores, expected.
Table modelSizeTable();
// Not in that table: the references alone take 20 seconds.
void addModelSizeAttentionCases(Table& table);

// Adds every line of `lines` to `table` with tensors that start one element late.
void addLateStarts(Table& table, const Table& lines);

inline const char* typeName(DType type) noexcept
{
    return type == DType::BF16 ? "bf16" : "f32";
}

inline constexpr DType kBothTypes[] = {DType::F32, DType::BF16};

} // namespace mr::conformance
