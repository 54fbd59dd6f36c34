#include "core/prove/conformance.h"

#include "core/prove/conformance_bytes.h"
#include "core/prove/conformance_case.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <numeric>
#include <set>

namespace mr {

namespace conformance {

namespace {

// Fills `to` with `period`, over and over.
void repeat(std::span<const std::byte> period, std::span<std::byte> to)
{
    for (std::size_t done = 0; done < to.size(); done += period.size())
        std::memcpy(to.data() + done, period.data(), std::min(period.size(), to.size() - done));
}

TensorView shaped(DType type, const Dims& dims)
{
    TensorView view;
    view.dtype = type;
    view.rank = static_cast<int>(dims.size());
    std::copy(dims.begin(), dims.end(), view.dims.begin());
    return view;
}

// In tolerances; a difference where none is allowed is infinite.
double errorOf(double got, double want, double tolerance)
{
    if (got == want || (std::isnan(got) && std::isnan(want)))
        return 0.0;
    const double error = std::abs(got - want) / tolerance;
    return error >= 0.0 ? error : std::numeric_limits<double>::infinity(); // NaN, too
}

} // namespace

CaseRun::CaseRun(Device& device, unsigned seed)
    : m_device(device)
    , m_engine(seed)
{
    auto stream = device.createStream("conformance");
    auto event = device.createEvent();
    if (stream.ok() && event.ok()) {
        m_stream = std::move(stream.value());
        m_event = std::move(event.value());
    } else {
        m_status = stream.ok() ? event.status() : stream.status();
    }
}

Input CaseRun::random(DType type, const Dims& dims, double spread)
{
    Values values(static_cast<std::size_t>(shaped(type, dims).count()));
    for (double& v : values) { // 12 uniforms: std::normal_distribution differs by library
        for (int i = 0; i < 6; ++i) {
            const std::uint64_t two = m_engine();
            v += static_cast<double>(two >> 32) / 4294967296.0 - 0.5;
            v += static_cast<double>(two & 0xFFFFFFFFU) / 4294967296.0 - 0.5;
        }
        v = static_cast<double>(roundTo(type, static_cast<float>(v * spread)));
    }
    return given(type, dims, values);
}

Input CaseRun::repeated(DType type, const Dims& dims)
{
    constexpr std::int64_t kPeriod = 65'521; // a prime: rows do not repeat where columns do
    const Values period = random(type, {kPeriod}).values;
    Input input{unset(type, dims), Values(static_cast<std::size_t>(shaped(type, dims).count()))};
    repeat(std::as_bytes(std::span(period)), std::as_writable_bytes(std::span(input.values)));
    const std::vector<std::byte> encoded = encodedAs(type, period);
    upload(input.view, [&](std::span<std::byte> to) { repeat(encoded, to); });
    return input;
}

Input CaseRun::given(DType type, const Dims& dims, const Values& values)
{
    Input input{unset(type, dims), values};
    upload(input.view, [&](std::span<std::byte> to) { encodeAs(type, values, to); });
    return input;
}

TensorView CaseRun::blank(DType type, const Dims& dims)
{
    TensorView view = unset(type, dims);
    upload(view, [](std::span<std::byte> to) { std::ranges::fill(to, std::byte{0xFF}); });
    return view;
}

// Memory for a tensor, with any bytes.
TensorView CaseRun::unset(DType type, const Dims& dims)
{
    TensorView view = shaped(type, dims);
    // An optional tensor is one with memory, so an empty one has some as well.
    const std::size_t late = type == DType::U8 ? 0 : m_lateElements * sizeOf(type);
    const std::size_t bytes = view.bytes() + late;
    m_owned.push_back(allocate(bytes == 0 ? 64 : bytes, MemoryKind::Device));
    view.data = m_owned.back().data();
    if (view.data)
        view.data += late;
    return view;
}

TensorView CaseRun::rounded(const TensorView& sum)
{
    const TensorView out = blank(DType::BF16, {sum.count()});
    call(ops().finishGradient({vectorView(sum.data, DType::F32, sum.count()), {}, out}, stream()));
    return out;
}

void CaseRun::call(const Status& enqueued)
{
    if (m_status.ok())
        m_status = enqueued;
    finish();
}

void CaseRun::expect(
    const char* what, const TensorView& view, const Values& want, const Values& tolerance)
{
    std::vector<std::int64_t> places(want.size());
    std::iota(places.begin(), places.end(), 0);
    expectAt(what, view, places, want, tolerance);
}

void CaseRun::expectAt(const char* what, const TensorView& view,
    const std::vector<std::int64_t>& places, const Values& want, const Values& tolerance)
{
    const std::vector<std::byte> got = download(view);
    if (!m_status.ok())
        return;
    m_bytes.insert(m_bytes.end(), got.begin(), got.end());
    m_types.emplace_back(view.dtype, got.size());
    for (std::size_t i = 0; i < want.size(); ++i) {
        const auto place = static_cast<std::size_t>(places[i]);
        const double value = decode(view.dtype, got.data() + place * sizeOf(view.dtype));
        const double error = errorOf(value, want[i], tolerance[i]);
        if (error > m_error || m_worst.empty()) {
            m_error = std::max(error, m_error);
            m_worst = fmt::format("{}[{}] is {}, want {}", what, place, std::to_string(value),
                std::to_string(want[i]));
        }
    }
}

void CaseRun::expectExactly(const char* what, const TensorView& view, const Values& want)
{
    expect(what, view, want, Values(want.size(), 0.0));
}

void CaseRun::expectSame(const char* what, const TensorView& view, const TensorView& want)
{
    const std::vector<std::byte> bytes = download(want);
    Values values;
    for (std::size_t i = 0; m_status.ok() && i < static_cast<std::size_t>(want.count()); ++i)
        values.push_back(decode(want.dtype, bytes.data() + i * sizeOf(want.dtype)));
    expectExactly(what, view, values);
}

std::string CaseRun::digest() const
{
    std::vector<std::byte> bytes = m_bytes;
    std::byte* at = bytes.data();
    for (const auto& [type, count] : m_types)
        for (std::byte* const end = at + count; at < end; at += sizeOf(type))
            if (std::isnan(decode(type, at)))
                std::memset(at, 0xFF, sizeOf(type));
    return fmt::format("{:016x}", XXH3_64bits(bytes.data(), bytes.size()));
}

Buffer CaseRun::allocate(std::size_t bytes, MemoryKind kind)
{
    if (!m_status.ok())
        return {};
    auto buffer = m_device.allocate(bytes, kind, "conformance");
    if (!buffer.ok()) {
        m_status = buffer.status();
        return {};
    }
    return std::move(buffer.value());
}

// Pinned memory is dear to allocate: one piece serves every copy of the run, and grows.
std::span<std::byte> CaseRun::stage(std::size_t bytes)
{
    if (m_stage.bytes() < bytes) {
        m_stage = {}; // first: both need not fit
        m_stage = allocate(bytes, MemoryKind::PinnedHost);
    }
    return m_status.ok() ? std::span(m_stage.data(), bytes) : std::span<std::byte>();
}

template <typename Fill>
void CaseRun::upload(const TensorView& view, Fill fill)
{
    const std::span<std::byte> staged = stage(view.bytes());
    if (staged.empty())
        return;
    fill(staged);
    call(m_stream->copy(view.data, staged));
}

std::vector<std::byte> CaseRun::download(const TensorView& view)
{
    std::vector<std::byte> bytes(view.bytes());
    if (bytes.empty())
        return bytes;
    const std::span<std::byte> staged = stage(bytes.size());
    if (staged.empty())
        return bytes;
    call(m_stream->copy(staged.data(), {view.data, bytes.size()}));
    if (m_status.ok())
        std::memcpy(bytes.data(), staged.data(), bytes.size());
    return bytes;
}

void CaseRun::finish()
{
    if (!m_status.ok())
        return;
    m_status = m_stream->record(*m_event);
    m_device.submit();
    if (m_status.ok())
        m_status = m_event->wait();
}

namespace {

ConformanceResult runCase(Device& device, const Case& line)
{
    ConformanceResult result;
    result.op = line.op;
    result.name = line.name;
    CaseRun first(device, kCaseSeed);
    line.run(first);
    CaseRun second(device, kCaseSeed);
    line.run(second);
    result.worst = first.worst();
    result.error = first.error();
    result.sameBits = first.bytes() == second.bytes();
    result.bits = first.digest();
    const Status& status = first.status().ok() ? second.status() : first.status();
    result.message = status.message();
    result.pass = status.ok() && result.sameBits && result.error <= 1.0;
    return result;
}

} // namespace

Table wholeTable()
{
    Table table;
    addMatrixCases(table);
    addAttentionCases(table);
    addRowCases(table);
    addHeadCases(table);
    addLossCases(table);
    addLookupCases(table);
    addColumnCases(table);
    addCopyCases(table);
    addElementCases(table);
    addUpdateCases(table);
    addCompactCases(table);
    addInputCases(table);
    addLightCases(table);
    addProjectionCases(table);
    addLightUpdateCases(table);
    addChosenRowCases(table);
    addFp8Cases(table);
    addDoraCases(table);
    addConvCases(table);
    addDeltaCases(table);
    addGatedCases(table);
    return table;
}

Table modelSizeTable()
{
    Table table;
    addModelSizeProductCases(table);
    addModelSizeRowCases(table);
    addModelSizeLossCases(table);
    return table;
}

void addLateStarts(Table& table, const Table& lines)
{
    for (const Case& line : lines)
        table.push_back({line.op, line.name + " one element late", [run = line.run](CaseRun& late) {
                             late.startOneElementLate();
                             run(late);
                         }});
}

} // namespace conformance

std::vector<std::string> conformanceOps()
{
    std::set<std::string> ops;
    for (const conformance::Case& line : conformance::wholeTable())
        ops.insert(line.op);
    return {ops.begin(), ops.end()};
}

Result<ConformanceReport> runConformance(
    Device& device, const ConformanceCallback& each, const std::string& onlyOp, bool modelSizes)
{
    conformance::Table table = conformance::wholeTable();
    if (modelSizes)
        for (conformance::Case& line : conformance::modelSizeTable())
            table.push_back(std::move(line));
    ConformanceReport report;
    for (const conformance::Case& line : table) {
        if (!onlyOp.empty() && line.op != onlyOp)
            continue;
        if (line.op == "codeProduct" && !device.info().multipliesCodes)
            continue;
        const ConformanceResult result = conformance::runCase(device, line);
        ++report.cases;
        report.passed += result.pass ? 1 : 0;
        if (each)
            each(result);
    }
    if (auto stream = device.createStream("conformance"); !stream.ok())
        return stream.status();
    return report;
}

} // namespace mr
