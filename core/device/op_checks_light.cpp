// The checks of optimizers that keep little or no state.

#include "core/device/op_checker.h"
#include "core/device/op_checks.h"

namespace mr {

using checks::Checker;

Status checkRowSquares(const RowSquaresArgs& a)
{
    const std::int64_t rows = a.x.dims[0];
    return Checker("rowSquares")
        .leads("x", a.x, 2)
        .optional("scalars", a.scalars, DType::U8, {sizeof(StepScalars)})
        .holds((a.rowRoots.data == nullptr) == (a.columnRoots.data == nullptr),
            "rowRoots and columnRoots come together")
        .optional("rowRoots", a.rowRoots, DType::F32, {rows})
        .optional("columnRoots", a.columnRoots, DType::F32, {a.x.dims[1]})
        .tensor("sums", a.sums, DType::F32, {rows})
        .apart("sums", a.sums, "rowRoots", a.rowRoots)
        .status();
}

Status checkColumnSquares(const ColumnSquaresArgs& a)
{
    const std::int64_t cols = a.x.dims[1];
    return Checker("columnSquares")
        .leads("x", a.x, 2, true)
        .tensor("scalars", a.scalars, DType::U8, {sizeof(StepScalars)})
        .tensor("parts", a.parts, DType::F32, {rowParts(a.x.dims[0]), cols})
        .tensor("sums", a.sums, DType::F32, {cols})
        .apart("parts", a.parts, "sums", a.sums)
        .status();
}

Status checkAverageSquares(const AverageSquaresArgs& a)
{
    const std::int64_t rows = a.rows.dims[0];
    const std::int64_t cols = a.columns.dims[0];
    return Checker("averageSquares")
        .leads("rows", a.rows, 1, true)
        .leads("columns", a.columns, 1, true)
        .tensor("rowSums", a.rowSums, DType::F32, {rows})
        .tensor("columnSums", a.columnSums, DType::F32, {cols})
        .tensor("scalars", a.scalars, DType::U8, {sizeof(StepScalars)})
        .holds(rows > 0 && cols > 0, "a weight has at least one row and one column")
        .holds(a.past >= 0.0F && a.past <= 1.0F && a.present >= 0.0F && a.present <= 1.0F,
            "past and present must be in [0, 1]")
        .apart("rows", a.rows, "rowSums", a.rowSums)
        .apart("columns", a.columns, "columnSums", a.columnSums)
        .status();
}

Status checkStepSize(const StepSizeArgs& a)
{
    const std::int64_t rows = a.updateSums.dims[0];
    return Checker("lightStepSize")
        .leads("updateSums", a.updateSums, 1, true)
        .holds(a.rule != StepRule::Relative || a.weightSums.data,
            "a step relative to the weight needs weightSums")
        .optional("weightSums", a.weightSums, DType::F32, {rows})
        .tensor("size", a.size, DType::F32, {1})
        .holds(rows > 0 && a.count >= rows, "count must be that of whole rows")
        .holds(a.limit > 0.0F, "limit must be above 0")
        .status();
}

Status checkProjectionSigns(const ProjectionSignsArgs& a)
{
    return Checker("projectionSigns").leads("signs", a.signs, 1, true).status();
}

Status checkProjectGradient(const ProjectGradientArgs& a)
{
    const std::int64_t rows = a.x.dims[0];
    const std::int64_t cols = a.x.dims[1];
    Checker checker("projectGradient");
    checker.leads("x", a.x, 2, true)
        .tensor("signs", a.signs, DType::F32, {a.overRows ? rows : cols})
        .tensor("scalars", a.scalars, DType::U8, {sizeof(StepScalars)})
        .tensor("sums", a.sums, DType::F32, {a.overRows ? cols : rows});
    if (a.overRows)
        checker.tensor("parts", a.parts, DType::F32, {rowParts(rows), cols})
            .apart("parts", a.parts, "sums", a.sums);
    return checker.status();
}

Status checkProjectedStep(const ProjectedStepArgs& a)
{
    const std::int64_t n = a.projected.dims[0];
    return Checker("projectedStep")
        .leads("projected", a.projected, 1, true)
        .leads("squareSums", a.squareSums, 1, true)
        .tensor("first", a.first, DType::F32, {n})
        .tensor("second", a.second, DType::F32, {n})
        .tensor("norm", a.norm, DType::F32, {1})
        .tensor("size", a.size, DType::F32, {1})
        .tensor("scalars", a.scalars, DType::U8, {sizeof(StepScalars)})
        .holds(n > 0 && a.squareSums.dims[0] > 0 && a.squareSums.dims[0] <= n,
            "a weight has rows, at most as many as its longer side")
        .status();
}

Status checkSelectRows(const SelectRowsArgs& a)
{
    const std::int64_t rows = a.squares.dims[0];
    const std::int64_t n = a.numbers.dims[0];
    return Checker("selectRows")
        .leads("squares", a.squares, 1, true)
        .leads("numbers", a.numbers, 1, true)
        .tensor("ranked", a.ranked, DType::F32, {n})
        .tensor("scalars", a.scalars, DType::U8, {sizeof(StepScalars)})
        .holds(n > 0 && n <= rows, "at least one row is chosen, at most all")
        .holds(rows <= kMostNumberedRows, "a number of a row must be exact in F32")
        .apart("ranked", a.ranked, "squares", a.squares)
        .apart("ranked", a.ranked, "numbers", a.numbers)
        .apart("numbers", a.numbers, "squares", a.squares)
        .status();
}

Status checkRowAdamw(const RowAdamwArgs& a)
{
    const std::int64_t n = a.grad.dims[0];
    const std::int64_t rows = a.numbers.dims[0];
    return Checker("rowAdamw")
        .leads("grad", a.grad, 1, true)
        .leads("numbers", a.numbers, 1, true)
        .tensor("high", a.high, DType::U16, {n})
        .optional("low", a.low, a.low.dtype == DType::I16 ? DType::I16 : DType::I8, {n})
        .tensor("m", a.m, DType::F32, {rows, a.cols})
        .tensor("v", a.v, DType::F32, {rows, a.cols})
        .tensor("scalars", a.scalars, DType::U8, {sizeof(StepScalars)})
        .holds(a.first >= 0 && a.cols > 0, "first is at least 0 and cols above it")
        .holds(rows > 0, "at least one row is chosen")
        .apart("m", a.m, "v", a.v)
        .status();
}

Status checkLightUpdate(const LightUpdateArgs& a)
{
    const std::int64_t n = a.grad.dims[0];
    const bool isHalves = a.low.dtype == DType::I16;
    const bool hasRoots = a.rowRoots.data != nullptr;
    Checker checker("lightUpdate");
    checker.leads("grad", a.grad, 1, true)
        .tensor("high", a.high, DType::U16, {n})
        .optional("low", a.low, isHalves ? DType::I16 : DType::I8, {n})
        .tensor("size", a.size, DType::F32, {1})
        .tensor("scalars", a.scalars, DType::U8, {sizeof(StepScalars)})
        .holds(a.first >= 0 && a.cols > 0, "first is at least 0 and cols above it")
        .holds(
            hasRoots == (a.columnRoots.data != nullptr), "rowRoots and columnRoots come together");
    if (hasRoots)
        checker.leads("rowRoots", a.rowRoots, 1, true)
            .tensor("columnRoots", a.columnRoots, DType::F32, {a.cols})
            .holds(a.first + n <= a.rowRoots.dims[0] * a.cols, "the range ends behind the weight");
    return checker.status();
}

} // namespace mr
