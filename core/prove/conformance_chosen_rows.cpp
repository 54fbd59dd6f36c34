// selectRows and rowAdamw. No tolerance: core/device/light_update.h and core/device/adamw.h fix
// every bit.

#include "core/prove/conformance_planes.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace mr::conformance {
namespace {

std::uint32_t bitsOfSquare(double square)
{
    return std::bit_cast<std::uint32_t>(asFloat(square));
}

// Sorted; of equal squares the first row leads.
Values selectedInOrder(const Values& squares, std::int64_t count)
{
    std::vector<std::int64_t> order(squares.size());
    std::iota(order.begin(), order.end(), std::int64_t{0});
    std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
        return bitsOfSquare(squares[static_cast<std::size_t>(a)]) >
               bitsOfSquare(squares[static_cast<std::size_t>(b)]);
    });
    Values chosen(order.begin(), order.begin() + count);
    std::sort(chosen.begin(), chosen.end());
    return chosen;
}

enum class Squares { Mixed, Ties, Equal, NotNumbers, NotFinite };

constexpr std::pair<Squares, const char*> kSquares[] = {{Squares::Mixed, "different"},
    {Squares::Ties, "of five values"}, {Squares::Equal, "of zero"},
    {Squares::NotNumbers, "some no number"}, {Squares::NotFinite, "not finite"}};

Values someSquares(CaseRun& run, std::int64_t rows, Squares kind)
{
    constexpr double kSome[] = {3.0, 0.0, 1e-42, 3e38, 1.0};
    Values squares = run.random(DType::F32, {rows}).values;
    for (std::size_t i = 0; i < squares.size(); ++i) {
        const double square = squares[i] * squares[i];
        squares[i] = static_cast<double>(asFloat(kind == Squares::Ties    ? kSome[i * i % 31 % 5]
                                                 : kind == Squares::Equal ? 0.0
                                                                          : square));
        if (kind == Squares::NotNumbers && i % 3 == 0)
            squares[i] = i % 2 == 0 ? std::numeric_limits<double>::quiet_NaN()
                                    : std::numeric_limits<double>::infinity();
    }
    return squares;
}

Input scalarsOf(CaseRun& run, float clipFactor, bool finite)
{
    StepScalars scalars;
    scalars.clipFactor = clipFactor;
    scalars.finite = finite ? 1 : 0;
    return run.given(DType::U8, {sizeof scalars}, bytesOf(scalars));
}

void selectRows(CaseRun& run, std::int64_t rows, std::int64_t count, Squares kind)
{
    const Values squares = someSquares(run, rows, kind);
    const Input scalars = scalarsOf(run, 1.0F, kind != Squares::NotFinite);
    const Values before(static_cast<std::size_t>(count), 0.5);
    SelectRowsArgs args;
    args.squares = run.given(DType::F32, {rows}, squares).view;
    args.ranked = run.blank(DType::F32, {count});
    args.numbers = run.given(DType::F32, {count}, before).view;
    args.scalars = scalars.view;
    run.call(run.ops().selectRows(args, run.stream()));
    run.expectExactly("numbers", args.numbers,
        kind == Squares::NotFinite ? before : selectedInOrder(squares, count));
}

enum class Rows { One, Third, All };

// One: that of the range's last element, so that elements behind the range may belong to it.
std::vector<std::int64_t> rowsOf(Rows choice, const LightRange& range)
{
    if (choice == Rows::One)
        return {(range.first + std::max(range.count, std::int64_t{1}) - 1) / range.cols};
    std::vector<std::int64_t> chosen;
    for (std::int64_t row = 0; row < range.rows; ++row)
        if (choice == Rows::All || row % 3 == 1 || range.rows == 1)
            chosen.push_back(row);
    return chosen;
}

struct RowUpdate {
    const char* words;
    Step step;
    Rows choice;
    bool isFirst;
};

constexpr RowUpdate kUpdates[] = {
    {" a third decayed", Step::Decayed, Rows::Third, false},
    {" a third first not decayed", Step::Plain, Rows::Third, true},
    {" a third first not finite", Step::NotFinite, Rows::Third, true},
    {" one row first decayed", Step::Decayed, Rows::One, true},
    {" all rows not decayed", Step::Plain, Rows::All, false},
};

// A range of a weight, and the moments of its chosen rows.
struct RowState {
    std::vector<Planes> planes;
    Values m, v;
};

constexpr float kRowClip = 0.7F;

// `m` and `v` become those of the update.
float steppedInOrder(float p, double grad, double& m, double& v, const RowAdamwArgs& args)
{
    const AdamwFactors& f = args.factors;
    const float g = asFloat(grad) * kRowClip;
    const float first = args.isFirst ? 0.0F : asFloat(m);
    const float second = args.isFirst ? 0.0F : asFloat(v);
    const float mean = std::fma(f.oneMinusBeta1, g, f.beta1 * first);
    const float square = std::fma(f.oneMinusBeta2 * g, g, f.beta2 * second);
    const float divisor = std::fma(std::sqrt(square), f.inverseSqrtBias2, f.eps);
    m = static_cast<double>(mean);
    v = static_cast<double>(square);
    return std::fma(-f.stepSize, mean / divisor, args.decayed ? p * f.decay : p);
}

void stepChosen(RowState& state, const std::vector<std::int64_t>& chosen, const LightRange& range,
    const Input& grad, MasterPlanes format, const RowAdamwArgs& args)
{
    for (std::int64_t i = 0; i < range.count; ++i) {
        const std::int64_t element = range.first + i;
        const auto slot = std::find(chosen.begin(), chosen.end(), element / range.cols);
        if (slot == chosen.end())
            continue;
        const auto kept =
            static_cast<std::size_t>((slot - chosen.begin()) * range.cols + element % range.cols);
        Planes& planes = state.planes[static_cast<std::size_t>(i)];
        planes = planesOf(format,
            steppedInOrder(masterOf(format, planes), grad(i), state.m[kept], state.v[kept], args),
            randomOf(element));
    }
}

RowAdamwArgs rowArgs(const LightRange& range, const RowUpdate& how)
{
    AdamwSettings settings;
    settings.weightDecay = 0.3;
    RowAdamwArgs args;
    args.factors = adamwFactors(settings, 0.05, how.isFirst ? 1 : 7);
    args.first = range.first;
    args.cols = range.cols;
    args.decayed = how.step == Step::Decayed;
    args.isFirst = how.isFirst;
    args.key = kLightKey;
    args.counter = kLightCounter;
    return args;
}

void rowAdamw(CaseRun& run, const LightRange& range, MasterPlanes format, const RowUpdate& how)
{
    const std::vector<std::int64_t> chosen = rowsOf(how.choice, range);
    const auto rows = static_cast<std::int64_t>(chosen.size());
    const Input grad = run.random(DType::F32, {range.count});
    const Input m = run.random(DType::F32, {rows, range.cols}, 0.1);
    Values squares = run.random(DType::F32, {rows, range.cols}, 0.1).values;
    for (double& square : squares)
        square = static_cast<double>(asFloat(square * square));
    RowState want{somePlanes(run, format, range.count), m.values, squares};
    RowAdamwArgs args = rowArgs(range, how);
    givePlanes(run, format, want.planes, args);
    args.grad = grad.view;
    args.numbers = run.given(DType::F32, {rows}, Values(chosen.begin(), chosen.end())).view;
    args.m = m.view;
    args.v = run.given(DType::F32, {rows, range.cols}, squares).view;
    args.scalars = scalarsOf(run, kRowClip, how.step != Step::NotFinite).view;
    run.call(run.ops().rowAdamw(args, run.stream()));
    if (how.step != Step::NotFinite)
        stepChosen(want, chosen, range, grad, format, args);
    expectPlanes(run, want.planes, args);
    run.expectExactly("m", args.m, want.m);
    run.expectExactly("v", args.v, want.v);
}

void addRangeCases(Table& table, const LightRange& range, MasterPlanes format, const char* name)
{
    for (const RowUpdate& how : kUpdates)
        push(table, "rowAdamw", name + std::string(how.words) + describe(range), range.count,
            [=](CaseRun& run) { rowAdamw(run, range, format, how); });
}

void addSelectCases(Table& table, std::int64_t rows, std::int64_t count)
{
    for (const auto& [kind, words] : kSquares)
        push(table, "selectRows", std::to_string(count) + " of squares " + words, rows,
            [=, kind = kind](CaseRun& run) { selectRows(run, rows, count, kind); });
}

// All rows and one, several blocks of either, a last block of one.
constexpr std::pair<std::int64_t, std::int64_t> kSelections[] = {
    {1, 1}, {7, 1}, {16, 2}, {33, 33}, {257, 32}, {513, 257}, {2050, 256}};

// Beside those of other updates: ranges that end inside the second of two chosen rows, single
// elements behind the last pack; behind it; and behind a whole pack, where the first chosen row
// begins in the second pack of a thread.
constexpr LightRange kRowRanges[] = {{6, 64, 0, 259}, {6, 64, 0, 321}, {6, 1536, 0, 9000}};

} // namespace

void addChosenRowCases(Table& table)
{
    Table late;
    for (const auto& [rows, count] : kSelections)
        addSelectCases(late, rows, count);
    table.insert(table.end(), late.begin(), late.end());
    std::vector<LightRange> ranges(std::begin(kLightRanges), std::end(kLightRanges));
    ranges.insert(ranges.end(), std::begin(kRowRanges), std::end(kRowRanges));
    for (const LightRange& range : ranges)
        for (const auto& [format, name] : kMasterFormats) {
            addRangeCases(table, range, format, name);
            if (range.cols % 8 == 0 && range.count < 10'000)
                addRangeCases(late, range, format, name);
        }
    addLateStarts(table, late);
}

} // namespace mr::conformance
