#include "pages/model_section.h"

#include "pages/models_dialog.h"
#include "text/format.h"
#include "text/units.h"
#include "widgets/message_label.h"
#include "widgets/path_edit.h"

#include <QDir>
#include <QEvent>
#include <QFileInfo>
#include <QHBoxLayout>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QVBoxLayout>

namespace mr::ui {

namespace {

constexpr int kDelayMs = 150; // after the last key stroke

} // namespace

ModelSection::ModelSection(const UiServices& services, QWidget* parent)
    : QWidget(parent)
    , m_services(services)
    , m_card(new Card(this))
    , m_label(new QLabel(this))
    , m_path(new PathEdit(PathEdit::Want::Folder, this))
    , m_onThisPc(new QPushButton(this))
    , m_message(new MessageLabel(this))
{
    m_path->setObjectName(QStringLiteral("modelPath"));
    m_label->setBuddy(m_path->edit());
    m_card->body()->addWidget(m_label);
    auto* row = new QHBoxLayout;
    row->addWidget(m_path, 1);
    row->addWidget(m_onThisPc);
    m_card->body()->addLayout(row);
    m_card->body()->addWidget(m_message);
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->addWidget(m_card);

    m_onThisPc->setObjectName(QStringLiteral("modelsOnThisPc"));
    m_onThisPc->setVisible(m_services.findModels != nullptr);
    connect(m_onThisPc, &QPushButton::clicked, this, [this] {
        auto* dialog = new ModelsDialog(m_services, this);
        connect(dialog, &ModelsDialog::chosen, this, &ModelSection::setPath);
        dialog->open();
    });
    m_delay.setSingleShot(true);
    m_delay.setInterval(kDelayMs);
    connect(&m_delay, &QTimer::timeout, this, &ModelSection::inspect);
    connect(m_path, &PathEdit::pathChanged, this, [this] {
        m_info.reset();
        m_canBePlanned = false;
        m_delay.start();
        emit changed();
    });
    retranslateUi();
}

QString ModelSection::path() const
{
    return m_path->path();
}

void ModelSection::setPath(const QString& path)
{
    m_path->setPath(path);
}

void ModelSection::inspect()
{
    const QString path = m_path->path();
    if (path.isEmpty()) {
        m_question.cancel();
        m_message->clear();
        emit changed();
        return;
    }
    m_message->show(MessageLabel::Kind::Busy, tr("Looking at the model…"));
    m_question.ask([look = m_services.inspectModel, p = path.toStdString()] { return look(p); },
        [this](const Result<ModelInfo>& result) { show(result); });
}

void ModelSection::show(const Result<ModelInfo>& result)
{
    if (!result.ok()) {
        QStringList lines{QString::fromStdString(result.status().message())};
        if (const QString way = wayOut(); !way.isEmpty())
            lines << way;
        m_message->showLines(MessageLabel::Kind::Error, lines);
        emit changed();
        return;
    }
    Result<ModelInfo> copy = result;
    ModelInfo info = std::move(copy).value();
    m_canBePlanned = info.canBePlanned;
    if (info.problems.empty()) {
        m_message->show(MessageLabel::Kind::Good, summary(info));
        m_info = std::move(info);
    } else {
        showProblems(info);
    }
    emit changed();
}

// For what people take for a model folder and is none. Empty: nothing is known.
QString ModelSection::wayOut() const
{
    const QString path = m_path->path();
    if (QFileInfo::exists(path + QLatin1String("/adapter_config.json")))
        return tr("It is an adapter. Choose its model here, and the adapter below, as the adapter "
                  "to go on from.");
    if (QDir::isRelativePath(path) && path.count(QLatin1Char('/')) == 1)
        return tr("If it is a name on a hub, “On this PC…” and then “Get a model…” downloads it.");
    return {};
}

void ModelSection::showProblems(const ModelInfo& info)
{
    QStringList lines;
    for (const std::string& problem : info.problems)
        lines << QString::fromStdString(problem);
    if (info.canBePlanned)
        lines << tr("The plan shows what training it would need.");
    m_message->showLines(MessageLabel::Kind::Error, lines);
}

QString ModelSection::summary(const ModelInfo& info) const
{
    const QString first =
        tr("%1, %2 parameters, %3 layers of width %4")
            .arg(QString::fromStdString(info.architecture), Format::shortCount(info.parameters),
                countText(info.layers), countText(info.hidden));
    const QString second =
        tr("Vocabulary %1, at most %2 positions, stored as %3, %4, tokenizer: %5")
            .arg(countText(info.vocab), countText(info.maxPositions),
                QString::fromStdString(info.dtype), memoryText(static_cast<double>(info.bytes)),
                info.tokenizerKind.empty() ? tr("none")
                                           : QString::fromStdString(info.tokenizerKind));
    QStringList lines{first, second};
    for (const std::string& note : info.notes)
        lines << QString::fromStdString(note);
    return lines.join(QLatin1Char('\n'));
}

void ModelSection::changeEvent(QEvent* event)
{
    QWidget::changeEvent(event);
    if (event->type() == QEvent::LanguageChange)
        retranslateUi();
}

void ModelSection::retranslateUi()
{
    m_card->setTitle(tr("Model"));
    m_label->setText(tr("&Model folder"));
    m_onThisPc->setText(tr("On this PC…"));
    m_path->setTexts(
        tr("Model folder"), tr("A folder with config.json and *.safetensors. Drop it here."));
    if (m_info)
        m_message->show(MessageLabel::Kind::Good, summary(*m_info));
}

} // namespace mr::ui
