// Columns change owner: energies are compared on the host, and master and moments move.
//
// There is one count of updates per owner, not one per column. A moment that moves is therefore
// multiplied by (1 - beta^new count) / (1 - beta^old count): what bias correction makes of it is
// the same before and after, and where the counts agree nothing changes at all.

#include "core/engine/window_tasks.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>

namespace mr {
namespace {

float countRatio(double beta, std::int64_t from, std::int64_t to)
{
    if (from == to || from == 0 || to == 0)
        return 1.0F;
    const auto seen = [beta](std::int64_t count) {
        return 1.0 - std::pow(beta, static_cast<double>(count));
    };
    return static_cast<float>(seen(to) / seen(from));
}

// (rows, n) values to or from columns of a plane (rows, cols). Floats are multiplied by `scale`.
template <typename T>
void copyColumns(T* values, T* plane, std::int64_t rows, std::int64_t cols,
    std::span<const std::int32_t> columns, bool toPlane, float scale)
{
    for (std::int64_t r = 0; r < rows; ++r, plane += cols)
        for (const std::int32_t c : columns) {
            T& here = *values++;
            T& to = toPlane ? plane[c] : here;
            to = toPlane ? here : plane[c];
            if constexpr (std::is_same_v<T, float>)
                to *= scale;
        }
}

} // namespace

// One plane of one weight. The group's urgent gradients, which nobody needs between steps, serve as
// scratch on the device: first the list of positions, then as many rows as fit.
Status WindowTasks::movePlane(const Plane& plane, const Move& move, const Transfer& how)
{
    const std::int64_t n = plane.positions.count();
    const auto each = static_cast<std::int64_t>(sizeOf(plane.dense.dtype));
    const std::int64_t atOnce = plane.room / (n * each);
    if (atOnce < 1)
        return Status::error(ErrorKind::Internal, "column moves: no room for a row");
    for (std::int64_t row = 0; row < plane.dense.dims[0]; row += atOnce) {
        const std::int64_t rows = std::min(atOnce, plane.dense.dims[0] - row);
        const TensorView part = matrixView(plane.scratch, plane.dense.dtype, rows, n);
        const TensorView dense = plane.dense.rows(row, rows);
        std::byte* host = plane.host + row * plane.cols * each;
        m_column.resize(part.bytes());
        const auto copyHost = [&] {
            if (each == 4)
                copyColumns(reinterpret_cast<float*>(m_column.data()),
                    reinterpret_cast<float*>(host), rows, plane.cols, move.columns, how.toHost,
                    plane.scale);
            else
                copyColumns(reinterpret_cast<std::uint16_t*>(m_column.data()),
                    reinterpret_cast<std::uint16_t*>(host), rows, plane.cols, move.columns,
                    how.toHost, 1.0F);
        };
        if (how.toHost) {
            MR_TRY(m_device.ops().gatherColumns({dense, plane.positions, part}, *how.stream));
            MR_TRY((*how.finish)(*how.stream));
            MR_TRY((*how.copy)(m_column.data(), part.data, part.bytes(), false));
            copyHost();
        } else {
            copyHost();
            MR_TRY((*how.copy)(part.data, m_column.data(), part.bytes(), true));
            MR_TRY(m_device.ops().scatterColumns({part, plane.positions, dense}, *how.stream));
            MR_TRY((*how.finish)(*how.stream));
        }
        (how.toHost ? d2hBytes : h2dBytes) += static_cast<std::int64_t>(part.bytes());
    }
    return {};
}

Status WindowTasks::moveColumns(
    GroupId id, const WeightCut& slot, const Move& move, const Transfer& how)
{
    const auto listBytes = move.positions.size() * sizeof(std::int32_t);
    std::byte* scratch = m_window.group(id).gradients;
    MR_TRY((*how.copy)(
        scratch, reinterpret_cast<const std::byte*>(move.positions.data()), listBytes, true));
    const DenseState dense = m_window.dense(id, slot);
    Plane plane;
    plane.positions =
        vectorView(scratch, DType::I32, static_cast<std::int64_t>(move.positions.size()));
    plane.scratch = scratch + listBytes;
    plane.room = static_cast<std::int64_t>(
        urgentGradientBytes(m_window.cut(id), sizeOf(m_window.compute())) - listBytes);
    plane.cols = slot.cols;
    // Halves are moved as the two bytes they are.
    const auto run = [&](const TensorView& view, DType type, StatePart part, float scale) {
        plane.dense = matrixView(view.data, type, slot.rows, slot.urgent);
        plane.host = m_memory.group(id).state[static_cast<std::size_t>(part)] +
                     static_cast<std::size_t>(slot.first) * bytesPerElement(part);
        plane.scale = scale;
        return movePlane(plane, move, how);
    };
    MR_TRY(run(dense.m, DType::F32, StatePart::FirstMoment, how.firstScale));
    MR_TRY(run(dense.v, DType::F32, StatePart::SecondMoment, how.secondScale));
    MR_TRY(run(dense.low, DType::BF16, StatePart::Low, 1.0F));
    return run(dense.high, DType::BF16, StatePart::High, 1.0F);
}

template <typename F>
Status WindowTasks::forUrgent(F&& fn)
{
    for (std::int32_t g = 0; g < m_window.groupCount(); ++g)
        for (const WeightCut& slot : m_window.cut(GroupId{g}).weights)
            if (slot.urgent > 0)
                MR_TRY(fn(GroupId{g}, slot));
    return {};
}

// What served as scratch holds gradients again, with zeros between those of two weights: sums and
// norms run over whole groups.
Status WindowTasks::clearScratch(Stream& stream, const Finish& finish)
{
    for (std::int32_t g = 0; g < m_window.groupCount(); ++g) {
        std::byte* data = m_window.group(GroupId{g}).gradients;
        const auto bytes = static_cast<std::int64_t>(
            urgentGradientBytes(m_window.cut(GroupId{g}), sizeOf(m_window.compute())));
        if (data && bytes > 0)
            MR_TRY(m_device.ops().fill({vectorView(data, DType::F32, bytes / 4), 0.0F}, stream));
    }
    return finish(stream);
}

Status WindowTasks::moveAll(const Transfer& how)
{
    MR_TRY(forUrgent([&](GroupId id, const WeightCut& slot) {
        const auto list = m_window.urgentList(id, slot);
        Move all;
        all.columns.assign(list.begin(), list.end());
        all.positions.resize(all.columns.size());
        std::iota(all.positions.begin(), all.positions.end(), 0);
        return moveColumns(id, slot, all, how);
    }));
    return clearScratch(*how.stream, *how.finish);
}

Status WindowTasks::publish(Stream& stream, const Copy& copy, const Finish& finish)
{
    const auto before = d2hBytes;
    MR_TRY(moveAll({&stream, &copy, &finish, true, 1.0F, 1.0F}));
    d2hBytes = before; // not of a step
    m_isPublished = true;
    return {};
}

Status WindowTasks::adopt(Stream& stream, const Copy& copy, const Finish& finish)
{
    const auto before = h2dBytes;
    MR_TRY(uploadLists(copy));
    MR_TRY(moveAll({&stream, &copy, &finish, false, 1.0F, 1.0F}));
    h2dBytes = before;
    m_isPublished = true;
    return {};
}

// Moments that nobody owns would fade into denormal numbers, which are slow; zeros stay zeros.
void WindowTasks::clearPublished()
{
    if (!m_isPublished)
        return;
    m_isPublished = false;
    (void)forUrgent([&](GroupId id, const WeightCut& slot) {
        clearMoments(id, slot, m_window.urgentList(id, slot));
        return Status();
    }).ok();
}

void WindowTasks::clearMoments(
    GroupId id, const WeightCut& slot, std::span<const std::int32_t> columns)
{
    for (const StatePart part : {StatePart::FirstMoment, StatePart::SecondMoment}) {
        auto* plane =
            reinterpret_cast<float*>(m_memory.group(id).state[static_cast<std::size_t>(part)]) +
            slot.first;
        for (std::int64_t r = 0; r < slot.rows; ++r, plane += slot.cols)
            for (const std::int32_t c : columns)
                plane[c] = 0.0F;
    }
}

Status WindowTasks::uploadLists(const Copy& copy)
{
    for (std::int32_t g = 0; g < m_window.groupCount(); ++g) {
        const WindowGroup& group = m_window.group(GroupId{g});
        MR_TRY(copy(group.lists, reinterpret_cast<const std::byte*>(group.columns.data()),
            group.columns.size() * sizeof(std::int32_t), true));
    }
    return {};
}

// The columns with the most energy, of equal ones the first. `leaving` has the positions that
// become free and their columns, `entering` the same positions and the columns that come.
void WindowTasks::choose(GroupId id, const WeightCut& slot, const float* energies)
{
    m_order.resize(static_cast<std::size_t>(slot.cols));
    std::iota(m_order.begin(), m_order.end(), 0);
    const auto isMore = [energies](std::int32_t a, std::int32_t b) {
        return energies[a] != energies[b] ? energies[a] > energies[b] : a < b;
    };
    std::nth_element(m_order.begin(), m_order.begin() + slot.urgent, m_order.end(), isMore);
    std::sort(m_order.begin(), m_order.begin() + slot.urgent);
    const std::span wanted(m_order.data(), static_cast<std::size_t>(slot.urgent));
    const auto owned = m_window.urgentList(id, slot);
    for (Move* move : {&m_leaving, &m_entering}) { // not `= {}`: that would give memory back
        move->positions.clear();
        move->columns.clear();
    }
    for (std::size_t position = 0; position < owned.size(); ++position) {
        if (std::binary_search(wanted.begin(), wanted.end(), owned[position]))
            continue;
        m_leaving.positions.push_back(static_cast<std::int32_t>(position));
        m_leaving.columns.push_back(owned[position]);
    }
    const auto hosts = m_window.hostList(id, slot);
    std::set_intersection(wanted.begin(), wanted.end(), hosts.begin(), hosts.end(),
        std::back_inserter(m_entering.columns));
    m_entering.positions = m_leaving.positions;
}

void WindowTasks::changeLists(GroupId id, const WeightCut& slot)
{
    const auto owned = m_window.urgentList(id, slot);
    const auto hosts = m_window.hostList(id, slot);
    for (std::size_t i = 0; i < m_entering.columns.size(); ++i) {
        owned[static_cast<std::size_t>(m_entering.positions[i])] = m_entering.columns[i];
        *std::lower_bound(hosts.begin(), hosts.end(), m_entering.columns[i]) = -1;
    }
    const auto end = std::remove(hosts.begin(), hosts.end(), -1);
    std::copy(m_leaving.columns.begin(), m_leaving.columns.end(), end);
    std::sort(hosts.begin(), hosts.end());
}

Status WindowTasks::selectColumns(
    Stream& stream, const Copy& copy, const Finish& finish, const AdamwFactors& betas)
{
    const double beta1 = betas.beta1;
    const double beta2 = betas.beta2;
    const std::int64_t device = state.deviceUpdates;
    const std::int64_t host = state.hostUpdates;
    const Transfer out{&stream, &copy, &finish, true, countRatio(beta1, device, host),
        countRatio(beta2, device, host)};
    const Transfer in{&stream, &copy, &finish, false, countRatio(beta1, host, device),
        countRatio(beta2, host, device)};
    const float* energies = m_window.hostEnergies.data();
    movedColumns = 0;
    for (std::int32_t g = 0; g < m_window.groupCount(); ++g) {
        const GroupId id{g};
        for (const WeightCut& slot : m_window.cut(id).weights) {
            if (!slot.isMovable())
                continue;
            choose(id, slot, energies + slot.listFirst);
            if (m_leaving.columns.empty())
                continue;
            movedColumns += static_cast<std::int64_t>(m_leaving.columns.size());
            MR_TRY(moveColumns(id, slot, m_leaving, out));
            MR_TRY(moveColumns(id, slot, m_entering, in));
            clearMoments(id, slot, m_entering.columns);
            changeLists(id, slot);
        }
        energies += m_window.cut(id).columns;
    }
    if (movedColumns == 0)
        return {};
    MR_TRY(clearScratch(stream, finish));
    return uploadLists(copy);
}

// A selection is part of a step, and a step takes no memory.
void WindowTasks::reserveMoves()
{
    std::size_t columns = 0;
    std::size_t urgent = 0;
    std::size_t bytes = 0;
    for (std::int32_t g = 0; g < m_window.groupCount(); ++g) {
        const GroupCut& cut = m_window.cut(GroupId{g});
        for (const WeightCut& slot : cut.weights)
            columns = std::max(columns, static_cast<std::size_t>(slot.cols));
        urgent = std::max(urgent, static_cast<std::size_t>(cut.widest));
        bytes = std::max(bytes, urgentGradientBytes(cut, sizeOf(m_window.compute())));
    }
    m_order.reserve(columns);
    m_column.reserve(bytes);
    for (Move* move : {&m_leaving, &m_entering}) {
        move->positions.reserve(urgent);
        move->columns.reserve(urgent);
    }
}

Status WindowTasks::prepare(Stream& stream, const Copy& copy, const Finish& finish)
{
    reserveMoves();
    const auto clear = [&](std::byte* data, std::int64_t bytes) {
        return data && bytes > 0
                   ? m_device.ops().fill({vectorView(data, DType::F32, bytes / 4), 0.0F}, stream)
                   : Status();
    };
    const auto compute = static_cast<std::int64_t>(sizeOf(m_window.compute()));
    for (std::int32_t g = 0; g < m_window.groupCount(); ++g) {
        const GroupId id{g};
        const WindowGroup& group = m_window.group(id);
        const GroupCut& cut = m_window.cut(id);
        MR_TRY(clear(group.state, 12 * cut.dense));
        MR_TRY(clear(group.sums, 4 * cut.dense));
        MR_TRY(clear(group.deviceSums, 4 * cut.packed));
        MR_TRY(clear(group.energies, 8 * cut.columns));
        std::fill_n(group.hostSums,
            m_window.bankBytes(id) * static_cast<std::size_t>(m_window.layout().banks),
            std::byte{0});
        if (group.landed)
            std::fill_n(group.landed, static_cast<std::size_t>(compute * cut.packed), std::byte{0});
    }
    MR_TRY(clearScratch(stream, finish));
    return uploadLists(copy);
}

} // namespace mr
