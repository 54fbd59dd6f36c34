// attention and attentionBackward against double precision.
//
// Tolerance, first order in u, doubled at the end for the higher orders. The score s of a key has
// an absolute error of E = (d + 4) u scale sum |q k|, at most E over the row's keys. exp has a
// relative error of 4 u, and turns E into a relative error; a running maximum rescales once per
// key, at most, at 5 u. So a probability is off by P = 2 E + (6 n + 16) u relative (numerator and
// sum; n visible keys), which bounds the output by P sum p |v|, and lse by E + (6 n + 16) u. The
// backward pass takes lse and out as they were stored, in the reference too, so its errors are
// those of its own arithmetic; they are written where they are summed.
//
// A soft-cap c tanh(s / c) never falls faster than s, so E only shrinks, and adds 8 u of the score
// (tanh within 5 u, its quotient and its product). The slope 1 - (s / c)^2 is a difference to 1:
// its error is 4 u absolute, and twice that of the score over c.
//
// BF16: a device with matrix units, which take both operands in BF16, may round the left operand of
// a second product: p before p v and p dO, the gradient of a score before it meets q or k. That is
// one relative error of at most u = 2^-8 a term, so it moves a sum of terms w x by at most
// u sum |w x|; the rounding of the stored result then sees a sum larger by as much: the factor
// 1 + u. The sum of probabilities is taken before they are rounded. F32 gets none of this.

#include "core/prove/conformance_case.h"

#include <algorithm>
#include <array>

namespace mr::conformance {

namespace {

struct Shape {
    const char* why;
    std::int64_t tokens;
    int heads, kvHeads, headDim;
    std::vector<std::int64_t> lengths; // documents laid end to end; empty: one
    std::int64_t window = 0;           // 0: none
    std::int64_t padding = 0;          // rows at the end that see only themselves
    std::int64_t firstQuery = 0;
    float softcap = 0.0F; // small, so that most scores are bent
};

const std::vector<Shape>& shapes()
{
    static const std::vector<Shape> all{
        {"one row", 1, 1, 1, 8, {}},
        {"one past a tile", 97, 2, 2, 16, {}},
        {"group of 2, odd head", 70, 4, 2, 10, {}},
        {"group of 4", 65, 4, 1, 64, {}},
        {"group of 3", 70, 6, 2, 24, {}},
        {"documents", 140, 4, 2, 32, {1, 60, 3, 70, 6}},
        {"documents and padding", 150, 2, 1, 16, {64, 50}, 0, 36},
        {"sliding window", 170, 2, 1, 16, {130, 40}, 40},
        {"several tiles", 200, 2, 1, 64, {}},
        {"no rows", 0, 2, 1, 16, {}},
        {"last query only", 131, 4, 2, 16, {}, 0, 0, 130},
        {"queries from the middle", 150, 4, 2, 32, {20, 130}, 0, 0, 70},
        // The head_dims with matrix-unit forms; tiles are 64 or 128 rows, 16 at 256.
        {"group of 3, three tiles", 195, 3, 1, 64, {}},
        {"documents across tiles and padding", 187, 2, 1, 64, {1, 62, 3, 90, 2}, 0, 29},
        {"documents", 133, 2, 1, 80, {40, 93}},
        {"sliding window", 150, 2, 1, 96, {131, 19}, 50},
        {"group of 2, one past a tile", 129, 4, 2, 128, {}},
        {"window, documents, padding", 200, 2, 1, 128, {7, 170}, 65, 23},
        {"packed row, window longer than most", 90, 4, 2, 64, {1, 1, 2, 9, 30, 3, 20, 12}, 8, 12},
        {"packed row, soft-cap, window", 77, 2, 1, 128, {5, 1, 40, 2, 20}, 11, 9, 0, 1.0F},
        {"window of one row", 66, 1, 1, 128, {}, 1},
        {"documents", 81, 2, 1, 256, {30, 51}},
        {"window and padding", 70, 1, 1, 256, {63}, 20, 7},
        {"last query only", 193, 4, 2, 64, {}, 0, 0, 192},
        {"queries from the middle", 197, 2, 1, 128, {100, 97}, 0, 0, 67},
        {"queries from the middle, window", 90, 1, 1, 256, {}, 37, 0, 33},
        {"soft-cap, odd head", 70, 4, 2, 10, {}, 0, 0, 0, 0.7F},
        {"soft-cap, documents, padding", 150, 4, 2, 64, {64, 50}, 0, 36, 0, 2.0F},
        {"soft-cap, window", 133, 2, 1, 128, {40, 93}, 21, 0, 0, 1.0F},
        {"soft-cap", 70, 2, 1, 256, {}, 0, 0, 0, 1.5F},
        {"soft-cap, queries from the middle", 90, 2, 1, 64, {}, 0, 0, 33, 1.0F},
        {"no matrix-unit form, documents", 70, 2, 1, 72, {30, 40}},
        {"no matrix-unit form", 66, 2, 1, 160, {}},
    };
    return all;
}

Values visibleFrom(const Shape& s)
{
    Values from;
    const std::int64_t used = s.tokens - s.padding;
    std::vector<std::int64_t> lengths = s.lengths;
    if (lengths.empty())
        lengths.push_back(used);
    for (const std::int64_t length : lengths) {
        const auto start = static_cast<std::int64_t>(from.size());
        for (std::int64_t i = 0; i < length; ++i)
            from.push_back(static_cast<double>(
                s.window == 0 ? start : std::max(start, start + i - s.window + 1)));
    }
    while (static_cast<std::int64_t>(from.size()) < s.tokens)
        from.push_back(static_cast<double>(from.size()));
    return from;
}

// One query row of one head, in double: scores, probabilities and their error bounds.
struct Row {
    std::int64_t query = 0;
    int head = 0;
    std::int64_t from = 0;
    std::int64_t count = 0;
    double scoreError = 0.0; // E of the file comment
    double lse = 0.0;
    Values scores;        // scaled and capped
    Values slopes;        // slope of each score by its product
    Values probabilities; // exp(score - lse)
};

struct ProductSum {
    double sum = 0.0;
    double magnitude = 0.0; // sum |x y|
};

// Four sums side by side, none of which waits for another.
ProductSum productSum(const double* x, const double* y, int count)
{
    constexpr int kSums = 4;
    std::array<ProductSum, kSums> sums{};
    const auto add = [&](ProductSum& to, int i) {
        const double product = x[i] * y[i];
        to.sum += product;
        to.magnitude += std::abs(product);
    };
    int i = 0;
    for (; i + kSums <= count; i += kSums)
        for (int k = 0; k < kSums; ++k)
            add(sums[static_cast<std::size_t>(k)], i + k);
    for (; i < count; ++i)
        add(sums[0], i);
    return {sums[0].sum + sums[1].sum + (sums[2].sum + sums[3].sum),
        sums[0].magnitude + sums[1].magnitude + (sums[2].magnitude + sums[3].magnitude)};
}

struct Geometry {
    Shape s;
    const Input& qkv;
    const Input& from;
    double scale;

    std::int64_t rowLength() const { return (s.heads + 2 * s.kvHeads) * std::int64_t{s.headDim}; }

    std::int64_t queryAt(std::int64_t row, int head) const
    {
        return row * rowLength() + std::int64_t{head} * s.headDim;
    }

    std::int64_t keyAt(std::int64_t row, int head) const
    {
        return row * rowLength() + std::int64_t{s.heads + head / (s.heads / s.kvHeads)} * s.headDim;
    }

    std::int64_t valueAt(std::int64_t row, int head) const
    {
        return keyAt(row, head) + std::int64_t{s.kvHeads} * s.headDim;
    }

    double capped(double score) const
    {
        const auto cap = static_cast<double>(s.softcap);
        return cap > 0.0 ? cap * std::tanh(score / cap) : score;
    }

    // 1 without a cap.
    double slope(double score) const
    {
        const auto cap = static_cast<double>(s.softcap);
        return cap > 0.0 ? 1.0 - score / cap * (score / cap) : 1.0;
    }

    // Error of slope(), where scores are off by at most `scoreError`.
    double slopeError(double scoreError) const
    {
        const auto cap = static_cast<double>(s.softcap);
        return cap > 0.0 ? 4.0 * kU + 2.0 * scoreError / cap : 0.0;
    }

    Row row(std::int64_t t, int head) const
    {
        Row r;
        r.query = t;
        r.head = head;
        r.from = static_cast<std::int64_t>(from(t));
        r.count = t + 1 - r.from;
        double top = -1e300;
        for (std::int64_t j = r.from; j <= t; ++j) {
            const ProductSum dot =
                productSum(qkv.at(queryAt(t, head)), qkv.at(keyAt(j, head)), s.headDim);
            r.scores.push_back(capped(dot.sum * scale));
            r.slopes.push_back(scale * slope(r.scores.back()));
            const double capError = s.softcap > 0.0F ? 8.0 * kU * std::abs(r.scores.back()) : 0.0;
            r.scoreError =
                std::max(r.scoreError, (s.headDim + 4) * kU * scale * dot.magnitude + capError);
            top = std::max(top, r.scores.back());
        }
        double total = 0.0;
        for (const double score : r.scores)
            total += std::exp(score - top);
        r.lse = top + std::log(total);
        for (const double score : r.scores)
            r.probabilities.push_back(std::exp(score - r.lse));
        return r;
    }
};

double probabilityError(const Row& r)
{
    return 2.0 * r.scoreError + (6.0 * static_cast<double>(r.count) + 16.0) * kU;
}

// Relative error that a left operand rounded to the storage type may add; see the file comment.
double operandRounding(DType type)
{
    return type == DType::BF16 ? kUBf16 * (1.0 + kUBf16) : 0.0;
}

void attention(CaseRun& run, DType type, const Shape& s)
{
    const std::int64_t columns = (s.heads + 2 * s.kvHeads) * std::int64_t{s.headDim};
    const Input qkv = run.random(type, {s.tokens, columns});
    const Input from = run.given(DType::I32, {s.tokens}, visibleFrom(s));
    const auto scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(s.headDim)));
    AttentionArgs args{
        qkv.view, from.view, {}, {}, s.heads, s.kvHeads, s.headDim, scale, s.firstQuery, s.softcap};
    const std::int64_t rows = s.tokens - s.firstQuery;
    args.out = run.blank(type, {rows, std::int64_t{s.heads} * s.headDim});
    args.lse = run.blank(DType::F32, {rows, s.heads});
    run.call(run.ops().attention(args, run.stream()));
    const Geometry g{s, qkv, from, static_cast<double>(scale)};
    Values out, outTolerance, lse, lseTolerance;
    for (std::int64_t t = s.firstQuery; t < s.tokens; ++t)
        for (int h = 0; h < s.heads; ++h) {
            const Row r = g.row(t, h);
            const double relative = probabilityError(r);
            lse.push_back(r.lse);
            lseTolerance.push_back(2.0 * (relative + 2.0 * kU * std::abs(r.lse)));
            for (int d = 0; d < s.headDim; ++d) {
                double sum = 0.0;
                double magnitude = 0.0;
                for (std::int64_t j = 0; j < r.count; ++j) {
                    const double p = r.probabilities[static_cast<std::size_t>(j)];
                    const double v = qkv(g.valueAt(r.from + j, h) + d);
                    sum += p * v;
                    magnitude += p * std::abs(v);
                }
                out.push_back(sum);
                outTolerance.push_back(2.0 * (relative + kU) * magnitude +
                                       unitOf(type) * (1.0 + 1e-3) * magnitude +
                                       operandRounding(type) * magnitude);
            }
        }
    run.expect("out", args.out, out, outTolerance);
    run.expect("lse", args.lse, lse, lseTolerance);
}

// Sums of the three gradients, with magnitudes weighted by their errors.
struct Gradients {
    Values sum;
    Values error;
    Values magnitude;

    explicit Gradients(std::size_t count)
        : sum(count)
        , error(count)
        , magnitude(count)
    {
    }

    void add(std::int64_t at, double weight, double weightError, double value)
    {
        const auto i = static_cast<std::size_t>(at);
        sum[i] += weight * value;
        magnitude[i] += std::abs(weight * value);
        error[i] += std::abs(weightError * value);
    }
};

struct BackwardInputs {
    const Input& out;
    const Input& lse;
    const Input& gradOut;
};

void addBackwardRow(const Geometry& g, const BackwardInputs& in, const Row& r, Gradients& sums)
{
    const std::int64_t t = r.query;
    const int head = r.head;
    const int dim = g.s.headDim;
    const std::int64_t at = (t * g.s.heads + head) * dim;
    const ProductSum delta = productSum(in.out.at(at), in.gradOut.at(at), dim);
    const double lse = in.lse(t * g.s.heads + head);
    for (std::int64_t k = 0; k < r.count; ++k) {
        const std::int64_t j = r.from + k;
        const double score = r.scores[static_cast<std::size_t>(k)];
        const double p = std::exp(score - lse);
        // Score, the rounding of score - lse, and exp.
        const double pError =
            p * (r.scoreError + 2.0 * kU * (std::abs(score) + std::abs(lse)) + 4.0 * kU);
        const ProductSum gradP = productSum(in.gradOut.at(at), g.qkv.at(g.valueAt(j, head)), dim);
        const double difference = gradP.sum - delta.sum;
        const double slope = r.slopes[static_cast<std::size_t>(k)];
        const double gradScore = slope * p * difference;
        const double gradScoreError =
            slope * (pError * std::abs(difference) +
                        p * (dim + 8.0) * kU * (gradP.magnitude + delta.magnitude)) +
            g.scale * g.slopeError(r.scoreError) * p * std::abs(difference);
        for (int d = 0; d < dim; ++d) {
            sums.add(g.valueAt(j, head) + d, p, pError, in.gradOut(at + d));
            sums.add(
                g.keyAt(j, head) + d, gradScore, gradScoreError, g.qkv(g.queryAt(t, head) + d));
            sums.add(
                g.queryAt(t, head) + d, gradScore, gradScoreError, g.qkv(g.keyAt(j, head) + d));
        }
    }
}

// Results that an exact forward would store, so that the case tests backward alone; all rows.
std::vector<Row> forwardResults(const Geometry& g, DType type, Values& out, Values& lse)
{
    std::vector<Row> rows;
    for (std::int64_t t = 0; t < g.s.tokens; ++t)
        for (int h = 0; h < g.s.heads; ++h) {
            const Row& r = rows.emplace_back(g.row(t, h));
            lse.push_back(static_cast<double>(static_cast<float>(r.lse)));
            for (int d = 0; d < g.s.headDim; ++d) {
                double sum = 0.0;
                for (std::int64_t j = 0; j < r.count; ++j)
                    sum += r.probabilities[static_cast<std::size_t>(j)] *
                           g.qkv(g.valueAt(r.from + j, h) + d);
                out.push_back(static_cast<double>(roundTo(type, static_cast<float>(sum))));
            }
        }
    return rows;
}

TensorView partialOf(CaseRun& run, const Shape& s)
{
    return run.blank(DType::F32, {attentionPartials(s.tokens, s.heads, s.kvHeads, s.headDim)});
}

// `splits`: with scratch for the gradients of keys and values by query head.
void attentionBackward(CaseRun& run, DType type, const Shape& s, bool splits)
{
    const std::int64_t columns = (s.heads + 2 * s.kvHeads) * std::int64_t{s.headDim};
    const std::int64_t outColumns = std::int64_t{s.heads} * s.headDim;
    const Input qkv = run.random(type, {s.tokens, columns});
    const Input from = run.given(DType::I32, {s.tokens}, visibleFrom(s));
    const auto scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(s.headDim)));
    const Geometry g{s, qkv, from, static_cast<double>(scale)};
    Values outValues, lseValues;
    const std::vector<Row> rows = forwardResults(g, type, outValues, lseValues);
    const Input out = run.given(type, {s.tokens, outColumns}, outValues);
    const Input lse = run.given(DType::F32, {s.tokens, s.heads}, lseValues);
    const Input gradOut = run.random(type, {s.tokens, outColumns});
    const AttentionBackwardArgs args{qkv.view, from.view, out.view, lse.view, gradOut.view,
        run.blank(DType::F32, {s.tokens, s.heads}), run.blank(type, {s.tokens, columns}), s.heads,
        s.kvHeads, s.headDim, scale, s.softcap, splits ? partialOf(run, s) : TensorView{}};
    run.call(run.ops().attentionBackward(args, run.stream()));
    Gradients sums(static_cast<std::size_t>(s.tokens * columns));
    for (const Row& row : rows)
        addBackwardRow(g, {out, lse, gradOut}, row, sums);
    // A gradient of a key sums at most tokens * group terms, one of a query at most tokens.
    const std::int64_t group = s.heads / s.kvHeads;
    const double terms = static_cast<double>(s.tokens * group) + 8.0;
    Values tolerance;
    for (std::size_t i = 0; i < sums.sum.size(); ++i)
        tolerance.push_back(2.0 * (sums.error[i] + terms * kU * sums.magnitude[i]) +
                            operandRounding(type) * sums.magnitude[i] +
                            unitOf(type) * (1.0 + 1e-3) * std::abs(sums.sum[i]) + 1e-38);
    run.expect("gradQkv", args.gradQkv, sums.sum, tolerance);
}

std::string describe(const char* op, DType type, const Shape& s)
{
    return std::string(op) + " " + typeName(type) + " " + std::to_string(s.tokens) + " tokens, " +
           std::to_string(s.heads) + "/" + std::to_string(s.kvHeads) + " heads of " +
           std::to_string(s.headDim) + ": " + s.why;
}

} // namespace

void addAttentionCases(Table& table)
{
    for (const DType type : kBothTypes)
        for (const Shape& s : shapes()) {
            table.push_back({"attention", describe("attention", type, s),
                [=](CaseRun& run) { attention(run, type, s); }});
            if (s.firstQuery != 0)
                continue;
            const std::string name = describe("attentionBackward", type, s);
            table.push_back({"attentionBackward", name,
                [=](CaseRun& run) { attentionBackward(run, type, s, false); }});
            if (s.heads > s.kvHeads && type == DType::BF16)
                table.push_back({"attentionBackward", name + ", by query head",
                    [=](CaseRun& run) { attentionBackward(run, type, s, true); }});
        }
}

void addModelSizeAttentionCases(Table& table)
{
    const Shape s{"of a model", 2048, 2, 1, 128, {}};
    table.push_back({"attention", describe("attention", DType::BF16, s),
        [=](CaseRun& run) { attention(run, DType::BF16, s); }});
    table.push_back(
        {"attentionBackward", describe("attentionBackward", DType::BF16, s) + ", by query head",
            [=](CaseRun& run) { attentionBackward(run, DType::BF16, s, true); }});
}

} // namespace mr::conformance
