#include "models/export_table_model.h"

#include "text/svg_icon.h"
#include "text/theme_colors.h"
#include "text/units.h"

#include <millrace/export_model.h>

#include <QGuiApplication>
#include <QPixmap>

namespace mr::ui {

namespace {

constexpr int kCheckExtent = 14;

QPixmap checkIcon(bool passed)
{
    const ThemeColors& colors = themeColors(QGuiApplication::palette());
    return svgPixmap(passed ? QStringLiteral("check") : QStringLiteral("error"),
        passed ? colors.good : colors.error, kCheckExtent, qGuiApp->devicePixelRatio());
}

} // namespace

void ExportTableModel::setExports(const std::vector<ExportRow>& exports)
{
    if (exports == m_rows)
        return;
    beginResetModel();
    m_rows = exports;
    endResetModel();
}

int ExportTableModel::rows() const
{
    return static_cast<int>(m_rows.size());
}

// Sizes differ in their units, so digits below each other would not be of one value.
bool ExportTableModel::isNumber(int) const
{
    return false;
}

// A form of a newer program keeps the name it has on the command line.
QString ExportTableModel::formName(const std::string& form)
{
    for (const ExportFormInfo& info : exportForms()) {
        if (info.name != form)
            continue;
        switch (info.form) {
        case ExportForm::Safetensors:
        case ExportForm::Merged:
            return tr("Model folder");
        case ExportForm::Gguf:
            return tr("GGUF file");
        case ExportForm::Ollama:
            return tr("Ollama folder");
        case ExportForm::Peft:
            return tr("Adapter folder (PEFT)");
        case ExportForm::GgufAdapter:
            return tr("Adapter as a GGUF file");
        case ExportForm::Torchrun:
            return tr("Job for PyTorch");
        }
    }
    return QString::fromStdString(form);
}

QString ExportTableModel::text(const ExportRow& row, int column)
{
    switch (static_cast<Column>(column)) {
    case Form:
        return formName(row.form);
    case Check:
        return row.passed ? tr("Passed its check") : tr("Failed its check");
    case Type:
        return QString::fromStdString(row.type);
    case Size:
        return row.bytes > 0 ? memoryText(static_cast<double>(row.bytes)) : QStringLiteral("–");
    case Time:
        return momentText(row.createdMs);
    case Path:
        return QString::fromStdString(row.path);
    case ColumnCount:
        break;
    }
    return {};
}

QVariant ExportTableModel::value(const ExportRow& row, int column)
{
    switch (static_cast<Column>(column)) {
    case Check:
        return row.passed;
    case Size:
        return row.bytes > 0 ? QVariant(qlonglong{row.bytes}) : QVariant();
    case Time:
        return qlonglong{row.createdMs};
    default:
        return text(row, column);
    }
}

// Sentences, the faults first; the paragraphs let the tool tip wrap.
QString ExportTableModel::verdict(const ExportRow& row)
{
    QString html;
    for (const auto* part : {&row.faults, &row.facts, &row.notes})
        for (const std::string& sentence : *part)
            html +=
                QStringLiteral("<p>%1</p>").arg(QString::fromStdString(sentence).toHtmlEscaped());
    return html;
}

QVariant ExportTableModel::cell(int row, int column, int role) const
{
    const ExportRow& shown = m_rows[static_cast<std::size_t>(row)];
    switch (role) {
    case Qt::DisplayRole:
        return text(shown, column);
    case ValueRole:
        return value(shown, column);
    case Qt::DecorationRole:
        return column == Check ? QVariant(checkIcon(shown.passed)) : QVariant();
    case Qt::ToolTipRole:
        return column == Path ? text(shown, Path).toHtmlEscaped() : verdict(shown);
    default:
        return {};
    }
}

QString ExportTableModel::title(int column) const
{
    switch (column) {
    case Form:
        return tr("Form");
    case Check:
        return tr("Check");
    case Type:
        return tr("Weights as");
    case Size:
        return tr("Size");
    case Time:
        return tr("Written");
    case Path:
        return tr("Path");
    default:
        return {};
    }
}

} // namespace mr::ui
