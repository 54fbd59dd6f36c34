#include "models/local_model_table.h"

#include "text/format.h"
#include "text/theme_colors.h"
#include "text/units.h"

#include <QGuiApplication>

#include <utility>

namespace mr::ui {

namespace {

constexpr qsizetype kCommitLength = 40;
constexpr qsizetype kShownCommit = 8;

// The name, and which of several revisions it is.
QString nameWithRevision(const LocalModel& model)
{
    const QString name = QString::fromStdString(model.name);
    QString revision = QString::fromStdString(model.revision);
    if (revision.isEmpty() || revision == QLatin1String("main"))
        return name;
    if (revision.size() == kCommitLength)
        revision.truncate(kShownCommit);
    return QStringLiteral("%1 (%2)").arg(name, revision);
}

QString knownText(const QString& text)
{
    return text.isEmpty() ? QString(QChar(0x2013)) : text;
}

} // namespace

bool LocalModelTable::isTrainable(const LocalModel& model)
{
    return !model.path.empty() && model.use != ModelUse::Nothing;
}

QString LocalModelTable::storeName(ModelStore store)
{
    switch (store) {
    case ModelStore::HuggingFace:
        return QStringLiteral("Hugging Face");
    case ModelStore::LmStudio:
        return QStringLiteral("LM Studio");
    case ModelStore::Ollama:
        return QStringLiteral("Ollama");
    case ModelStore::Folder:
        return tr("Folder");
    }
    return {};
}

QString LocalModelTable::useName(ModelUse use)
{
    switch (use) {
    case ModelUse::Train:
        return tr("Train");
    case ModelUse::Adapter:
        return tr("Adapter only");
    case ModelUse::Nothing:
        return tr("Nothing");
    }
    return {};
}

void LocalModelTable::setModels(std::vector<LocalModel> models)
{
    beginResetModel();
    m_models = std::move(models);
    endResetModel();
}

const LocalModel* LocalModelTable::model(int row) const
{
    return row < 0 || row >= rows() ? nullptr : &m_models[static_cast<std::size_t>(row)];
}

int LocalModelTable::rows() const
{
    return static_cast<int>(m_models.size());
}

bool LocalModelTable::isNumber(int column) const
{
    return column == Size || column == Parameters;
}

QString LocalModelTable::text(const LocalModel& model, int column)
{
    switch (static_cast<Column>(column)) {
    case Name:
        return nameWithRevision(model);
    case Use:
        return useName(model.use);
    case Size:
        return memoryText(static_cast<double>(model.bytes));
    case Parameters:
        return knownText(model.parameters > 0 ? Format::shortCount(model.parameters) : QString());
    case Architecture:
        return knownText(QString::fromStdString(model.architecture));
    case Licence:
        return knownText(QString::fromStdString(model.licence));
    case Store:
        return storeName(model.store);
    case ColumnCount:
        break;
    }
    return {};
}

QVariant LocalModelTable::value(const LocalModel& model, int column)
{
    switch (static_cast<Column>(column)) {
    case Use:
        return static_cast<int>(model.use);
    case Size:
        return static_cast<qulonglong>(model.bytes);
    case Parameters:
        return model.parameters > 0 ? QVariant(static_cast<qlonglong>(model.parameters))
                                    : QVariant();
    case Architecture:
        return model.architecture.empty() ? QVariant() : QVariant(text(model, column));
    case Licence:
        return model.licence.empty() ? QVariant() : QVariant(text(model, column));
    default:
        return text(model, column);
    }
}

QVariant LocalModelTable::cell(int row, int column, int role) const
{
    const LocalModel& model = m_models[static_cast<std::size_t>(row)];
    switch (role) {
    case Qt::DisplayRole:
        return text(model, column);
    case ValueRole:
        return value(model, column);
    case SearchRole:
        return QStringList{text(model, Name), text(model, Use), text(model, Architecture),
            text(model, Licence), text(model, Store), QString::fromStdString(model.path)}
            .join(QLatin1Char('\n'));
    case Qt::ToolTipRole:
        return QString::fromStdString(column == Name && !model.path.empty() ? model.path
                                      : column == Licence                   ? model.licence
                                                                            : model.reason)
            .toHtmlEscaped();
    case Qt::ForegroundRole:
        return isTrainable(model) ? QVariant()
                                  : QVariant(themeColors(QGuiApplication::palette()).muted);
    default:
        return {};
    }
}

QString LocalModelTable::title(int column) const
{
    switch (column) {
    case Name:
        return tr("Name");
    case Use:
        return tr("Can");
    case Size:
        return tr("Size");
    case Parameters:
        return tr("Parameters");
    case Architecture:
        return tr("Architecture");
    case Licence:
        return tr("Licence");
    case Store:
        return tr("From");
    default:
        return {};
    }
}

} // namespace mr::ui
