#include "models/run_table_model.h"

#include "models/outcome_words.h"
#include "models/run_figures.h"
#include "models/run_status.h"
#include "text/units.h"

#include <millrace/run_edits.h>

#include <QGuiApplication>
#include <QStringList>

#include <algorithm>
#include <cmath>
#include <utility>

namespace mr::ui {

namespace {

constexpr int kIconExtent = 16;

double stallPercent(const RunRow& run)
{
    const auto all = static_cast<double>(run.computeUs + run.stallUs);
    return all > 0.0 ? 100.0 * static_cast<double>(run.stallUs) / all : std::nan("");
}

double tokensPerSecond(const RunRow& run)
{
    const auto us = static_cast<double>(run.computeUs + run.stallUs);
    return us > 0.0 ? static_cast<double>(run.tokens) / us * 1e6 : std::nan("");
}

QVariant known(double value)
{
    return std::isfinite(value) ? QVariant(value) : QVariant();
}

bool sameRun(const RunRow& a, const RunRow& b)
{
    return a.status == b.status && a.name == b.name && a.lastStep == b.lastStep &&
           a.totalSteps == b.totalSteps && a.tokens == b.tokens && a.activeUs == b.activeUs &&
           a.endedMs == b.endedMs && a.resumable == b.resumable && a.startsAgain == b.startsAgain &&
           a.planJson.size() == b.planJson.size() && a.bestEvalStep == b.bestEvalStep &&
           a.lastEvalStep == b.lastEvalStep && a.notes == b.notes && a.tags == b.tags &&
           a.deletedMs == b.deletedMs;
}

QStringList tagsOf(const RunRow& run)
{
    QStringList tags;
    for (const std::string& tag : run.tags)
        tags << QString::fromStdString(tag);
    return tags;
}

bool isText(int column)
{
    switch (column) {
    case RunTableModel::Status:
    case RunTableModel::Name:
    case RunTableModel::Date: // reads like text; SortRole has the number
    case RunTableModel::Model:
    case RunTableModel::Dataset:
    case RunTableModel::Policy:
    case RunTableModel::Method:
    case RunTableModel::Tags:
    case RunTableModel::Note:
    case RunTableModel::KeptUntil:
        return true;
    default:
        return false;
    }
}

} // namespace

int RunTableModel::rows() const
{
    return static_cast<int>(m_rows.size());
}

bool RunTableModel::isNumber(int column) const
{
    return !isText(column);
}

QVariant RunTableModel::text(const Row& row, int column) const
{
    const RunRow& run = row.run;
    switch (static_cast<Column>(column)) {
    case Status:
        return RunStatusText::word(OutcomeWords::status(run));
    case Name:
        return QString::fromStdString(run.name);
    case BestEval:
        return numberText(run.bestEval, 4);
    case LastLoss:
        return numberText(run.lastLoss, 4);
    case Steps:
        return run.totalSteps > 0 ? tr("%1 / %2", "steps of all")
                                        .arg(countText(run.lastStep), countText(run.totalSteps))
                                  : countText(run.lastStep);
    case Tokens:
        return countText(run.tokens);
    case ActiveTime:
        return durationText(static_cast<double>(run.activeUs) / 1e6);
    case StallShare:
        return percentText(stallPercent(run));
    case Speed:
        return numberText(tokensPerSecond(run), 0);
    case PeakDevice:
        return run.devicePeakBytes > 0 ? memoryText(static_cast<double>(run.devicePeakBytes))
                                       : QString(QChar(0x2013));
    case Model:
        return QString::fromStdString(run.modelName);
    case Dataset:
        return QString::fromStdString(run.datasetName);
    case Policy:
        return row.policy;
    case Method:
        return row.method;
    case Date:
        return momentText(run.createdMs);
    case Tags:
        return tagsOf(run).join(QStringLiteral(", "));
    case Note:
        return QString::fromStdString(run.notes).section(QLatin1Char('\n'), 0, 0);
    case KeptUntil:
        return run.deletedMs > 0 ? momentText(run.deletedMs + kBinMs) : QString();
    case ColumnCount:
        break;
    }
    return {};
}

QVariant RunTableModel::sortValue(const Row& row, int column) const
{
    const RunRow& run = row.run;
    switch (static_cast<Column>(column)) {
    case BestEval:
        return known(run.bestEval);
    case LastLoss:
        return known(run.lastLoss);
    case Steps:
        return static_cast<qlonglong>(run.lastStep);
    case Tokens:
        return static_cast<qlonglong>(run.tokens);
    case ActiveTime:
        return static_cast<qlonglong>(run.activeUs);
    case StallShare:
        return known(stallPercent(run));
    case Speed:
        return known(tokensPerSecond(run));
    case PeakDevice:
        return static_cast<qlonglong>(run.devicePeakBytes);
    case Date:
        return static_cast<qlonglong>(run.createdMs);
    case KeptUntil:
        return static_cast<qlonglong>(run.deletedMs);
    default:
        return text(row, column);
    }
}

QVariant RunTableModel::cell(int at, int column, int role) const
{
    const Row& row = m_rows[static_cast<std::size_t>(at)];
    switch (role) {
    case Qt::DisplayRole:
        return text(row, column);
    case SortRole:
        return sortValue(row, column);
    case IdRole:
        return static_cast<qlonglong>(row.run.id);
    case StatusRole:
        return static_cast<int>(row.run.status);
    case SearchRole:
        return searchText(row);
    case TagsRole:
        return tagsOf(row.run);
    case Qt::EditRole:
        return column == Name ? text(row, column) : QVariant();
    case Qt::DecorationRole:
        if (column == Status)
            return RunStatusText::icon(OutcomeWords::status(row.run), QGuiApplication::palette(),
                kIconExtent, qGuiApp->devicePixelRatio());
        return {};
    case Qt::ToolTipRole:
        if (column == Status && !row.run.exitReason.empty())
            return QString::fromStdString(row.run.exitReason);
        if (const QString worse = OutcomeWords::sentence(row.run);
            column == Status && !worse.isEmpty())
            return worse;
        if (column == BestEval)
            return OutcomeWords::before(row.run);
        if (column == Name)
            return QString::fromStdString(row.run.dir);
        if (column == Note && !row.run.notes.empty())
            return QString::fromStdString(row.run.notes);
        return {};
    default:
        return {};
    }
}

QString RunTableModel::searchText(const Row& row) const
{
    return QStringList{text(row, Status).toString(), text(row, Name).toString(),
        text(row, Model).toString(), text(row, Dataset).toString(), row.policy, row.method,
        text(row, Tags).toString(), QString::fromStdString(row.run.notes)}
        .join(QLatin1Char('\n'));
}

Qt::ItemFlags RunTableModel::flags(const QModelIndex& index) const
{
    const Qt::ItemFlags flags = QAbstractTableModel::flags(index);
    return m_isRenameable && index.column() == Name ? flags | Qt::ItemIsEditable : flags;
}

bool RunTableModel::setData(const QModelIndex& index, const QVariant& value, int role)
{
    if (role != Qt::EditRole || !(flags(index) & Qt::ItemIsEditable))
        return false;
    const RunRow& run = m_rows[static_cast<std::size_t>(index.row())].run;
    if (const QString name = value.toString(); name != QString::fromStdString(run.name))
        emit renameRequested(run.id, name);
    return false;
}

QString RunTableModel::title(int column) const
{
    switch (column) {
    case Status:
        return tr("State");
    case Name:
        return tr("Name");
    case BestEval:
        return tr("Best evaluation");
    case LastLoss:
        return tr("Last loss");
    case Steps:
        return tr("Steps");
    case Tokens:
        return tr("Tokens");
    case ActiveTime:
        return tr("Active time");
    case StallShare:
        return tr("Waiting");
    case Speed:
        return tr("Tokens/s");
    case PeakDevice:
        return tr("Peak device memory");
    case Model:
        return tr("Model");
    case Dataset:
        return tr("Dataset");
    case Policy:
        return tr("Policy");
    case Method:
        return tr("Method");
    case Date:
        return tr("Date");
    case Tags:
        return tr("Tags");
    case Note:
        return tr("Note");
    case KeptUntil:
        return tr("Kept until");
    default:
        return {};
    }
}

void RunTableModel::setRuns(const RunRowsPtr& runs)
{
    const std::vector<RunRow>& fresh = *runs;
    const auto has = [](const auto& rows, std::int64_t id, auto idOf) {
        return std::any_of(
            rows.begin(), rows.end(), [&](const auto& row) { return idOf(row) == id; });
    };
    const auto idOfRun = [](const RunRow& run) { return run.id; };
    for (int row = rowCount() - 1; row >= 0; --row) {
        if (has(fresh, m_rows[static_cast<std::size_t>(row)].run.id, idOfRun))
            continue;
        beginRemoveRows({}, row, row);
        m_rows.erase(m_rows.begin() + row);
        endRemoveRows();
    }
    for (std::size_t i = 0; i < fresh.size(); ++i) {
        const int at = static_cast<int>(i);
        if (i >= m_rows.size() || m_rows[i].run.id != fresh[i].id) {
            const int from = rowOf(fresh[i].id);
            if (from >= 0) { // the order of the store changed: take it out, put it here
                beginRemoveRows({}, from, from);
                m_rows.erase(m_rows.begin() + from);
                endRemoveRows();
            }
            beginInsertRows({}, at, at);
            m_rows.insert(m_rows.begin() + at, {fresh[i], policyOf(fresh[i]), methodOf(fresh[i])});
            endInsertRows();
        } else if (!sameRun(m_rows[i].run, fresh[i])) {
            m_rows[i] = {fresh[i], policyOf(fresh[i]), methodOf(fresh[i])};
            emit dataChanged(index(at, 0), index(at, ColumnCount - 1));
        }
    }
}

const RunRow* RunTableModel::run(int row) const
{
    if (row < 0 || row >= rowCount())
        return nullptr;
    return &m_rows[static_cast<std::size_t>(row)].run;
}

int RunTableModel::rowOf(std::int64_t id) const
{
    for (std::size_t row = 0; row < m_rows.size(); ++row) {
        if (m_rows[row].run.id == id)
            return static_cast<int>(row);
    }
    return -1;
}

} // namespace mr::ui
