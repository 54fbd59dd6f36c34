#include "pages/dataset_section.h"

#include "charts/legend.h"
#include "models/units.h"
#include "pages/column_form.h"
#include "pages/template_choice.h"
#include "theme.h"
#include "widgets/format.h"
#include "widgets/message_label.h"
#include "widgets/path_edit.h"
#include "widgets/token_preview.h"

#include <QCheckBox>
#include <QComboBox>
#include <QEvent>
#include <QFileInfo>
#include <QLabel>
#include <QLineEdit>
#include <QScrollArea>
#include <QVBoxLayout>

#include <algorithm>

namespace mr::ui {

namespace {

constexpr int kLookDelayMs = 150;
constexpr int kPreviewRows = 6;
constexpr int kPreviewHeight = 190;

// Keys of DataSource::columns that are no columns.
const std::string kStyle = "style";
const std::string kTemplate = "chat_template";

QString listOf(const std::vector<std::string>& names)
{
    constexpr std::size_t kMost = 12;
    constexpr int kMostCharacters = 60;
    QStringList shown;
    for (std::size_t i = 0; i < std::min(names.size(), kMost); ++i)
        shown << QString::fromStdString(names[i]).left(kMostCharacters);
    return shown.join(QStringLiteral(", ")) +
           (names.size() > kMost ? QStringLiteral(", …") : QString());
}

} // namespace

DatasetSection::DatasetSection(const UiServices& services, QWidget* parent)
    : QWidget(parent)
    , m_services(services)
    , m_card(new Card(this))
    , m_label(new QLabel(this))
    , m_path(new PathEdit(PathEdit::Want::File, this))
    , m_message(new MessageLabel(this))
    , m_template(new TemplateChoice(this))
    , m_form(new ColumnForm(this))
    , m_previewTitle(new QLabel(this))
    , m_legend(new Legend(this))
    , m_previewArea(new QScrollArea(this))
    , m_preview(new TokenPreview)
    , m_pack(new QCheckBox(this))
    , m_packMessage(new MessageLabel(this))
    , m_evalLabel(new QLabel(this))
    , m_evalPath(new PathEdit(PathEdit::Want::File, this))
    , m_evalMessage(new MessageLabel(this))
{
    build();
    m_delay.setSingleShot(true);
    m_delay.setInterval(kLookDelayMs);
    connect(&m_delay, &QTimer::timeout, this, &DatasetSection::inspect);
    connect(m_path, &PathEdit::pathChanged, this, [this] {
        m_info.reset();
        m_format = DataFormat::Auto;
        m_columns.clear();
        m_form->clear();
        m_packMessage->clear();
        m_delay.start();
        emit changed();
    });
    connect(m_form, &ColumnForm::changed, this, &DatasetSection::takeColumns);
    connect(m_template, &TemplateChoice::chosen, this, &DatasetSection::takeTemplate);
    connect(m_pack, &QCheckBox::toggled, this, [this] {
        showPacking();
        emit changed();
    });
    connect(m_evalPath, &PathEdit::pathChanged, this, [this] {
        checkEvalPath();
        emit changed();
    });
    retranslateUi();
    clearPreview();
}

void DatasetSection::build()
{
    m_path->setObjectName(QStringLiteral("dataPath"));
    m_pack->setObjectName(QStringLiteral("pack"));
    m_evalPath->setObjectName(QStringLiteral("evalPath"));
    m_label->setBuddy(m_path->edit());
    m_evalLabel->setBuddy(m_evalPath->edit());
    m_previewArea->setWidget(m_preview);
    m_previewArea->setWidgetResizable(true);
    m_previewArea->setFrameShape(QFrame::NoFrame);
    m_previewArea->setFixedHeight(kPreviewHeight);
    m_previewArea->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    m_previewArea->viewport()->setAutoFillBackground(false);
    m_preview->setAutoFillBackground(false);
    m_previewArea->setFocusPolicy(Qt::StrongFocus);

    QVBoxLayout* body = m_card->body();
    body->addWidget(m_label);
    body->addWidget(m_path);
    body->addWidget(m_message);
    body->addWidget(m_template);
    body->addWidget(m_form);
    body->addWidget(m_previewTitle);
    body->addWidget(m_legend);
    body->addWidget(m_previewArea);
    body->addWidget(m_pack);
    body->addWidget(m_packMessage);
    body->addSpacing(4);
    body->addWidget(m_evalLabel);
    body->addWidget(m_evalPath);
    body->addWidget(m_evalMessage);
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->addWidget(m_card);
}

QString DatasetSection::path() const
{
    return m_path->path();
}

void DatasetSection::setPath(const QString& path)
{
    m_path->setPath(path);
}

QString DatasetSection::evalPath() const
{
    return m_evalPath->path();
}

void DatasetSection::setEvalPath(const QString& path)
{
    m_evalPath->setPath(path);
}

bool DatasetSection::pack() const
{
    return m_pack->isChecked();
}

void DatasetSection::setPack(bool pack)
{
    m_pack->setChecked(pack);
}

std::int64_t DatasetSection::batchRows() const
{
    if (!m_info)
        return 0;
    return pack() ? m_info->packedRows : m_info->sequences;
}

DataSource DatasetSection::source() const
{
    DataSource source;
    source.path = m_path->path().toStdString();
    source.format = m_format;
    source.columns = m_columns;
    return source;
}

void DatasetSection::setSource(const DataSource& source)
{
    m_path->setPath(QString::fromStdString(source.path));
    if (m_format == source.format && m_columns == source.columns)
        return;
    m_format = source.format;
    m_columns = source.columns;
    m_info.reset();
    m_delay.start();
}

void DatasetSection::setModel(const QString& modelDir, std::int64_t seqLen)
{
    const std::string dir = modelDir.toStdString();
    if (dir == m_modelDir && seqLen == m_seqLen)
        return;
    m_modelDir = dir;
    m_seqLen = seqLen;
    if (!path().isEmpty())
        m_delay.start();
}

void DatasetSection::inspect()
{
    if (path().isEmpty()) {
        m_question.cancel();
        m_message->clear();
        clearPreview();
        m_form->clear();
        emit changed();
        return;
    }
    m_message->show(MessageLabel::Kind::Busy, tr("Looking at the dataset…"));
    m_question.ask([look = m_services.inspectDataset, source = source(), dir = m_modelDir,
                       seqLen = m_seqLen] { return look(source, dir, seqLen, kPreviewRows); },
        [this](const Result<DatasetInfo>& result) { show(result); });
}

void DatasetSection::show(const Result<DatasetInfo>& result)
{
    if (!result.ok()) {
        m_info.reset();
        clearPreview();
        m_form->clear();
        m_message->show(
            MessageLabel::Kind::Error, QString::fromStdString(result.status().message()));
        emit changed();
        return;
    }
    Result<DatasetInfo> copy = result;
    m_info = std::move(copy).value();
    if (!showWayOut())
        showInfo();
    showForm();
    const bool hasRows = !m_info->preview.empty();
    m_preview->setRows(m_info->preview);
    for (QWidget* widget : {static_cast<QWidget*>(m_previewTitle), static_cast<QWidget*>(m_legend),
             static_cast<QWidget*>(m_previewArea)})
        widget->setVisible(hasRows);
    if (!m_info->problems.empty())
        m_info.reset();
    showPacking();
    emit changed();
}

// What is refused and can be mended here is said in words of this page.
bool DatasetSection::showWayOut()
{
    QString text;
    switch (m_info->refusal) {
    case DataRefusal::UnknownColumns:
        text =
            tr("The names of the columns do not tell which of them hold what. Choose them here.");
        break;
    case DataRefusal::Preferences:
        text = tr("This file holds preferences: answers that are to be compared, good and bad. "
                  "They cannot be trained as such. To train the good answers alone, choose their "
                  "columns here.");
        break;
    case DataRefusal::NoTemplate:
        text = tr("This file holds conversations, and the model has no chat template: it does not "
                  "know how they are written. Choose one to teach it; it is saved with the trained "
                  "model.");
        break;
    case DataRefusal::None:
    case DataRefusal::BadAnswers:
    case DataRefusal::Media:
    case DataRefusal::Untrainable:
        return false;
    }
    m_message->show(MessageLabel::Kind::Warning, text);
    return true;
}

// One line: what packing brings, or what is lost without.
void DatasetSection::showPacking()
{
    if (!m_info || m_info->packedRows == 0)
        return m_packMessage->clear();
    const std::int64_t inputs = m_info->tokens - m_info->sequences;
    const double alone = paddingShare(inputs, m_info->sequences, m_info->seqLen);
    const double packed = paddingShare(inputs, m_info->packedRows, m_info->seqLen);
    const QString line = !pack() && isMostlyPadded(alone)
                             ? tr("%4 of every step is padding. Packed: rows %1 instead of %2, %3 "
                                  "padding.")
                             : tr("Rows %1 instead of %2, %3 padding instead of %4.");
    m_packMessage->show(MessageLabel::Kind::Info,
        line.arg(countText(m_info->packedRows), countText(m_info->sequences),
            percentText(100.0 * packed), percentText(100.0 * alone)));
}

void DatasetSection::showInfo()
{
    if (m_info->problems.empty()) {
        const bool doubtful = m_info->cutRows > 0 || m_info->emptyRows > 0;
        m_message->show(
            doubtful ? MessageLabel::Kind::Warning : MessageLabel::Kind::Good, summary(*m_info));
        return;
    }
    QStringList lines;
    for (const std::string& problem : m_info->problems)
        lines << QString::fromStdString(problem);
    m_message->showLines(MessageLabel::Kind::Error, lines);
}

void DatasetSection::showForm()
{
    const bool cannotHelp =
        m_info->refusal == DataRefusal::BadAnswers || m_info->refusal == DataRefusal::Media;
    if (cannotHelp)
        m_form->clear();
    else
        m_form->setInfo(*m_info);
    const bool isMissing = m_info->refusal == DataRefusal::NoTemplate;
    const QString chosen = QString::fromStdString(m_info->chatTemplate);
    if (isMissing)
        m_template->offer();
    else
        m_template->setChosen(chosen);
    m_template->setVisible(isMissing || !chosen.isEmpty());
    setTabOrder(m_path->lastInFocusOrder(), m_form->kindBox());
    setTabOrder(m_form->lastInFocusOrder(), m_previewArea);
}

void DatasetSection::takeColumns()
{
    m_info.reset();
    const auto chosen = m_form->choices();
    if (!chosen) {
        m_delay.stop();
        m_question.cancel();
        clearPreview();
        m_message->show(MessageLabel::Kind::Warning, tr("Choose the columns."));
        emit changed();
        return;
    }
    auto columns = *chosen;
    for (const std::string& key : {kStyle, kTemplate})
        if (const auto kept = m_columns.find(key); kept != m_columns.end())
            columns.insert(*kept);
    m_columns = std::move(columns);
    m_delay.start();
    emit changed();
}

void DatasetSection::takeTemplate(const QString& choice)
{
    if (choice.isEmpty())
        m_columns.erase(kTemplate);
    else
        m_columns[kTemplate] = choice.toStdString();
    m_info.reset();
    m_delay.start();
    emit changed();
}

void DatasetSection::clearPreview()
{
    m_packMessage->clear();
    m_preview->setRows({});
    m_template->hide();
    m_previewTitle->hide();
    m_legend->hide();
    m_previewArea->hide();
}

QString DatasetSection::summary(const DatasetInfo& info) const
{
    QStringList lines;
    lines << tr("%1 rows, %2 sequences, %3")
                 .arg(countText(info.rows), countText(info.sequences),
                     memoryText(static_cast<double>(info.bytes)));
    if (info.tokens > 0)
        lines << tr("%1 tokens, %2 of them trained (%3)")
                     .arg(countText(info.tokens), countText(info.trainedTokens),
                         percentText(100.0 * static_cast<double>(info.trainedTokens) /
                                     static_cast<double>(info.tokens)));
    if (info.cutRows > 0)
        lines << tr("%n row(s) are longer than the sequence length and are cut.", nullptr,
            static_cast<int>(info.cutRows));
    if (!info.unusedColumns.empty())
        lines << tr("Columns that are not used: %1").arg(listOf(info.unusedColumns));
    if (info.emptyRows > 0)
        lines << tr("%n row(s) have nothing to train and are skipped.", nullptr,
            static_cast<int>(info.emptyRows));
    return lines.join(QLatin1Char('\n'));
}

void DatasetSection::checkEvalPath()
{
    const QString path = evalPath();
    // A stat of a path somebody just typed or dropped; whole files are read by workers.
    if (path.isEmpty() || QFileInfo(path).isFile())
        m_evalMessage->clear();
    else
        m_evalMessage->show(MessageLabel::Kind::Error, tr("There is no file %1.").arg(path));
}

void DatasetSection::changeEvent(QEvent* event)
{
    QWidget::changeEvent(event);
    if (event->type() == QEvent::LanguageChange)
        retranslateUi();
}

void DatasetSection::retranslateUi()
{
    m_card->setTitle(tr("Data"));
    m_label->setText(tr("Training &file"));
    m_path->setTexts(tr("Training file"), tr("JSONL, JSON, CSV or plain text. Drop it here."));
    m_pack->setText(tr("Pac&k short sequences"));
    m_pack->setToolTip(
        tr("Several share a row and none sees another: fewer steps in an epoch, more "
           "sequences in each, so that another learning rate may suit."));
    m_evalLabel->setText(tr("&Evaluation file (optional)"));
    m_evalPath->setTexts(tr("Evaluation file"),
        tr("Empty: 5 % of the training sequences are held out, at most 200"));
    m_previewTitle->setText(tr("First rows as the model sees them"));
    m_previewArea->setAccessibleName(tr("First rows of the dataset as tokens"));
    m_legend->setEntries({{tr("Trained: part of the loss"), {}, Legend::Mark::Box,
                              [](const QPalette& p) { return themeColors(p).good; }},
        {tr("Masked: read, not part of the loss"), {}, Legend::Mark::Box,
            [](const QPalette& p) { return themeColors(p).border; }}});
    if (m_info) {
        showInfo();
        showPacking();
    } else if (!path().isEmpty()) {
        m_delay.start(); // why it is refused is said in the language of that time
    }
}

} // namespace mr::ui
