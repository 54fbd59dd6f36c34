#include "pages/dataset_section.h"

#include "charts/legend.h"
#include "pages/column_form.h"
#include "pages/reading_choice.h"
#include "pages/template_choice.h"
#include "widgets/message_label.h"
#include "widgets/path_edit.h"
#include "widgets/token_preview.h"

#include <QCheckBox>
#include <QComboBox>
#include <QEvent>
#include <QFileInfo>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QScrollArea>
#include <QSignalBlocker>
#include <QVBoxLayout>

namespace mr::ui {

namespace {

constexpr int kLookDelayMs = 150;
constexpr int kPreviewRows = 6;
constexpr int kPreviewHeight = 190;

// Keys of DataSource::columns that are no columns.
const std::string kStyle = "style";
const std::string kTemplate = "chat_template";

} // namespace

DatasetSection::DatasetSection(const UiServices& services, QWidget* parent)
    : QWidget(parent)
    , m_services(services)
    , m_card(new Card(this))
    , m_label(new QLabel(this))
    , m_path(new PathEdit(PathEdit::Want::File, this))
    , m_message(new MessageLabel(this))
    , m_skip(new QCheckBox(this))
    , m_readings(new ReadingChoice(this))
    , m_template(new TemplateChoice(this))
    , m_form(new ColumnForm(this))
    , m_previewTitle(new QLabel(this))
    , m_legend(new Legend(this))
    , m_previewArea(new QScrollArea(this))
    , m_preview(new TokenPreview)
    , m_check(new QPushButton(this))
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
        m_readings->clear();
        setSkip(false);
        m_excluded = {};
        m_packMessage->clear();
        m_delay.start();
        emit changed();
    });
    connect(m_form, &ColumnForm::changed, this, &DatasetSection::takeColumns);
    connect(m_readings, &ReadingChoice::chosen, m_form, &ColumnForm::choose);
    connect(m_skip, &QCheckBox::toggled, this, [this] {
        m_info.reset();
        m_delay.start();
        emit changed();
    });
    connect(m_check, &QPushButton::clicked, this, &DatasetSection::checkRows);
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
    m_skip->setObjectName(QStringLiteral("skipBadRows"));
    m_skip->hide();
    m_check->setObjectName(QStringLiteral("checkRows"));
    m_check->hide();
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
    body->addWidget(m_skip);
    body->addWidget(m_readings);
    body->addWidget(m_template);
    body->addWidget(m_form);
    body->addWidget(m_previewTitle);
    body->addWidget(m_legend);
    body->addWidget(m_previewArea);
    body->addWidget(m_check, 0, Qt::AlignLeft);
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
    source.skipBadRows = m_skip->isChecked();
    source.excluded = m_excluded;
    source.excludedOf = m_excludedOf;
    return source;
}

void DatasetSection::setSource(const DataSource& source)
{
    m_path->setPath(QString::fromStdString(source.path));
    if (this->source() == source)
        return;
    setSkip(source.skipBadRows);
    m_format = source.format;
    m_columns = source.columns;
    m_excluded = source.excluded;
    m_excludedOf = source.excludedOf;
    m_info.reset();
    m_delay.start();
}

// Without a look at the file.
void DatasetSection::setSkip(bool skip)
{
    const QSignalBlocker blocked(m_skip);
    m_skip->setChecked(skip);
    m_skip->setVisible(skip);
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
        m_readings->clear();
        setSkip(false);
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
        m_readings->clear();
        m_message->show(
            MessageLabel::Kind::Error, QString::fromStdString(result.status().message()));
        emit changed();
        return;
    }
    Result<DatasetInfo> copy = result;
    m_info = std::move(copy).value();
    if (!showWayOut())
        showInfo();
    m_skip->setVisible(m_skip->isChecked() || !m_info->rowsRefused.counts.empty());
    m_check->setVisible(m_info->refusal == DataRefusal::None);
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

void DatasetSection::showForm()
{
    const bool cannotHelp =
        m_info->refusal == DataRefusal::BadAnswers || m_info->refusal == DataRefusal::Media;
    if (cannotHelp)
        m_form->clear();
    else
        m_form->setInfo(*m_info);
    // Once one is chosen the file is no longer asked about; the others can still be chosen.
    if (cannotHelp || !m_info->readings.empty())
        m_readings->setReadings(m_info->readings);
    m_readings->setChosen(m_form->choices());
    const bool isMissing = m_info->refusal == DataRefusal::NoTemplate;
    const QString chosen = QString::fromStdString(m_info->chatTemplate);
    if (isMissing)
        m_template->offer();
    else
        m_template->setChosen(chosen);
    m_template->setVisible(isMissing || !chosen.isEmpty());
    setTabOrder(m_path->lastInFocusOrder(), m_skip);
    setTabOrder(m_readings->follow(m_skip), m_form->kindBox());
    setTabOrder(m_form->lastInFocusOrder(), m_previewArea);
    setTabOrder(m_previewArea, m_check);
}

void DatasetSection::takeColumns()
{
    m_info.reset();
    const auto chosen = m_form->choices();
    m_readings->setChosen(chosen);
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
    m_check->hide();
    m_previewTitle->hide();
    m_legend->hide();
    m_previewArea->hide();
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

} // namespace mr::ui
