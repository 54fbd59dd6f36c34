#include "pages/export_dialog.h"

#include "bridge/background.h"
#include "pages/ollama_row.h"
#include "widgets/card.h"
#include "widgets/message_label.h"
#include "widgets/progress_line.h"

#include <QComboBox>
#include <QDesktopServices>
#include <QDialogButtonBox>
#include <QDir>
#include <QFileDialog>
#include <QFileInfo>
#include <QFormLayout>
#include <QHBoxLayout>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QStandardPaths>
#include <QUrl>
#include <QVBoxLayout>

#include <utility>

namespace mr::ui {

namespace {

constexpr int kLookMs = 200;

// A name that every file system takes.
QString fileNameOf(const QString& name)
{
    QString out;
    for (const QChar c : name)
        if (c.isLetterOrNumber() || c == u'.' || c == u'_')
            out += c;
        else if (!out.endsWith(u'-'))
            out += u'-';
    while (out.startsWith(u'.') || out.startsWith(u'-'))
        out.remove(0, 1);
    return out.isEmpty() ? QStringLiteral("model") : out;
}

MessageLabel::Kind kindOf(const ExportOutcome& outcome)
{
    if (!outcome.passed())
        return MessageLabel::Kind::Error;
    return outcome.notCreated.empty() ? MessageLabel::Kind::Good : MessageLabel::Kind::Warning;
}

} // namespace

struct ExportDialog::Work {
    std::atomic<bool> stops = false;
    std::atomic<std::uint64_t> done = 0;
    std::atomic<std::uint64_t> all = 0;
};

ExportDialog::ExportDialog(const UiServices& services, ExportSubject subject, QWidget* parent)
    : QDialog(parent)
    , m_services(services)
    , m_subject(std::move(subject))
    , m_form(new QComboBox)
    , m_help(makeMutedLabel())
    , m_type(new QComboBox)
    , m_typeLabel(new QLabel(tr("Weights as")))
    , m_place(new QLineEdit)
    , m_ollama(new OllamaRow(fileNameOf(m_subject.name)))
    , m_progress(new ProgressLine(tr("Progress of the export")))
    , m_verdict(new MessageLabel)
    , m_show(new QPushButton(tr("Show folder")))
{
    setObjectName(QStringLiteral("export"));
    setAttribute(Qt::WA_DeleteOnClose);
    setWindowTitle(tr("Export %1").arg(m_subject.name));
    m_help->setWordWrap(true);
    m_typeLabel->setBuddy(m_type);
    auto* fields = new QFormLayout;
    fields->addRow(tr("For"), m_form);
    fields->addRow(QString(), m_help);
    fields->addRow(m_typeLabel, m_type);
    fields->addRow(tr("Write to"), makePlaceRow());
    fields->addRow(QString(), m_ollama);
    auto* buttons = new QDialogButtonBox;
    m_start = buttons->addButton(tr("Export"), QDialogButtonBox::ActionRole);
    buttons->addButton(m_show, QDialogButtonBox::ActionRole);
    // Last, as it stands: Tab passes over one that was made before the others.
    m_close = buttons->addButton(tr("Close"), QDialogButtonBox::RejectRole);
    auto* layout = new QVBoxLayout(this);
    layout->addLayout(fields);
    layout->addWidget(m_progress);
    layout->addWidget(m_verdict);
    layout->addStretch(1);
    layout->addWidget(buttons);
    m_start->setDefault(true); // Enter exports, and closes nothing
    for (QPushButton* button : {m_close, m_show})
        button->setAutoDefault(false);
    for (const ExportForm form : formsOf(m_subject))
        m_form->addItem(formName(form), static_cast<int>(form));
    connect(m_form, &QComboBox::currentIndexChanged, this, &ExportDialog::showForm);
    connect(m_place, &QLineEdit::textChanged, this, &ExportDialog::enable);
    connect(m_ollama, &OllamaRow::changed, this, &ExportDialog::enable);
    connect(m_start, &QPushButton::clicked, this, &ExportDialog::run);
    connect(buttons, &QDialogButtonBox::rejected, this, &QDialog::reject);
    connect(&m_timer, &QTimer::timeout, this, &ExportDialog::look);
    connect(m_show, &QPushButton::clicked, this, [this] {
        const QFileInfo written(m_written);
        QDesktopServices::openUrl(
            QUrl::fromLocalFile(written.isDir() ? written.filePath() : written.absolutePath()));
    });
    resize(620, 340);
    showForm();
}

ExportDialog::~ExportDialog()
{
    if (m_work)
        m_work->stops = true;
}

std::vector<ExportForm> ExportDialog::formsOf(const ExportSubject& subject)
{
    std::vector<ExportForm> forms{ExportForm::Ollama, ExportForm::Gguf, ExportForm::Safetensors};
    if (subject.isAdapter) {
        forms.push_back(ExportForm::Peft);
        forms.push_back(ExportForm::GgufAdapter);
    }
    if (subject.isRun)
        forms.push_back(ExportForm::Torchrun);
    return forms;
}

QString ExportDialog::formName(ExportForm form) const
{
    switch (form) {
    case ExportForm::Ollama:
        return tr("Ollama");
    case ExportForm::Gguf:
        return tr("LM Studio and llama.cpp (GGUF file)");
    case ExportForm::Safetensors:
    case ExportForm::Merged:
        return tr("transformers, vLLM and others (model folder)");
    case ExportForm::Peft:
        return tr("PEFT (folder of the adapter alone)");
    case ExportForm::GgufAdapter:
        return tr("llama.cpp (GGUF file of the adapter alone)");
    case ExportForm::Torchrun:
        return tr("A rented machine (goes on under PyTorch)");
    }
    return {};
}

QString ExportDialog::formHelp(ExportForm form) const
{
    switch (form) {
    case ExportForm::Ollama:
        return tr("A folder with the model as a file, and a Modelfile: ollama create reads it. The "
                  "file is asked what the model is before it gets its name.");
    case ExportForm::Gguf:
        return tr("One file with weights, tokenizer and chat template. It is asked what the model "
                  "is before it gets its name.");
    case ExportForm::Safetensors:
    case ExportForm::Merged:
        return m_subject.isAdapter ? tr("The model with the adapter in it, as safetensors.")
                                   : tr("The model as safetensors, with its tokenizer.");
    case ExportForm::Peft:
        return tr("The adapter as it is, for the model that it was trained beside.");
    case ExportForm::GgufAdapter:
        return tr("The adapter beside a GGUF file of its model. Plain LoRA alone has such files.");
    case ExportForm::Torchrun:
        return tr("Weights, optimizer, data in their order, and a program of PyTorch that "
                  "continues the run. It holds your data: give it to no one who may not read it.");
    }
    return {};
}

QString ExportDialog::typeName(const QString& type) const
{
    const bool isGguf = chosen().form == ExportForm::Ollama || chosen().form == ExportForm::Gguf;
    if (type == QLatin1String("auto"))
        return isGguf ? tr("automatic (as exact as trained)") : tr("automatic (as it is)");
    if (type == QLatin1String("q8_0"))
        return tr("q8_0: half the size of f16, hardly any loss");
    if (type == QLatin1String("q4_k_m"))
        return tr("q4_k_m: a third of f16, some loss");
    return type;
}

const ExportFormInfo& ExportDialog::chosen() const
{
    return infoOf(static_cast<ExportForm>(m_form->currentData().toInt()));
}

QString ExportDialog::suggestedPlace() const
{
    const ExportFormInfo& info = chosen();
    const QDir folder(QStandardPaths::writableLocation(QStandardPaths::DocumentsLocation));
    QString name = fileNameOf(m_subject.name) + u'-' +
                   QString::fromLatin1(info.name.data(), static_cast<qsizetype>(info.name.size()));
    const QString ending = info.isFile ? QStringLiteral(".gguf") : QString();
    QString place = folder.filePath(name + ending);
    for (int i = 2; QFileInfo::exists(place); ++i)
        place = folder.filePath(name + u'-' + QString::number(i) + ending);
    return place;
}

QWidget* ExportDialog::makePlaceRow()
{
    auto* row = new QWidget;
    auto* browse = new QPushButton(tr("Browse…"));
    browse->setAutoDefault(false);
    m_place->setAccessibleName(tr("File or folder to write"));
    auto* layout = new QHBoxLayout(row);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->addWidget(m_place, 1);
    layout->addWidget(browse);
    connect(browse, &QPushButton::clicked, this, &ExportDialog::browse);
    return row;
}

void ExportDialog::showForm()
{
    const ExportFormInfo& info = chosen();
    m_help->setText(formHelp(info.form));
    m_type->clear();
    for (const std::string_view type : info.types) {
        const QString text = QString::fromLatin1(type.data(), static_cast<qsizetype>(type.size()));
        m_type->addItem(typeName(text), text);
    }
    m_type->setVisible(m_type->count() > 0);
    m_typeLabel->setVisible(m_type->count() > 0);
    m_ollama->setVisible(info.form == ExportForm::Ollama);
    if (m_place->text() == m_suggested) {
        m_suggested = suggestedPlace();
        m_place->setText(m_suggested);
    }
    enable();
}

void ExportDialog::browse()
{
    const QString place = QFileDialog::getSaveFileName(this, windowTitle(), m_place->text(),
        chosen().isFile ? tr("GGUF files (*.gguf)") : QString());
    if (!place.isEmpty())
        m_place->setText(place);
}

ExportOrder ExportDialog::order() const
{
    ExportOrder order;
    order.model = m_subject.path.toStdString();
    order.form = chosen().form;
    if (m_type->count() > 0)
        order.type = m_type->currentData().toString().toStdString();
    order.out = QDir::cleanPath(m_place->text().trimmed()).toStdString();
    if (order.form == ExportForm::Ollama)
        order.ollamaName = m_ollama->modelName().toStdString();
    return order;
}

void ExportDialog::run()
{
    if (m_work) { // the button stops it
        m_work->stops = true;
        m_start->setEnabled(false);
        return;
    }
    m_work = std::make_shared<Work>();
    m_progress->begin();
    m_timer.start(kLookMs);
    m_verdict->show(MessageLabel::Kind::Busy, tr("Reading the model…"));
    enable();
    using Done = std::shared_ptr<Result<ExportOutcome>>;
    background<Done>(
        this,
        [work = m_work, write = m_services.exportModel, order = order()] {
            return std::make_shared<Result<ExportOutcome>>(
                write(order, [work](std::uint64_t done, std::uint64_t all) {
                    work->done = done;
                    work->all = all;
                    return !work->stops;
                }));
        },
        [this](const Done& done) { finish(done); });
}

void ExportDialog::look()
{
    if (!m_work || m_work->all == 0)
        return;
    const std::uint64_t done = m_work->done;
    const std::uint64_t all = m_work->all;
    m_progress->setDone(done, all);
    m_verdict->show(
        MessageLabel::Kind::Busy, done < all ? tr("Writing…") : tr("Checking what was written…"));
}

void ExportDialog::finish(const std::shared_ptr<Result<ExportOutcome>>& done)
{
    m_work.reset();
    m_timer.stop();
    m_progress->end();
    if (done->ok())
        showOutcome(done->value());
    else if (done->status().kind() == ErrorKind::Cancelled)
        m_verdict->show(MessageLabel::Kind::Info, tr("Stopped. Nothing was left behind."));
    else
        m_verdict->show(
            MessageLabel::Kind::Error, QString::fromStdString(done->status().message()));
    enable();
}

void ExportDialog::showOutcome(const ExportOutcome& outcome)
{
    m_written = QString::fromStdString(outcome.path);
    QStringList lines{outcome.passed()
                          ? tr("Written and checked: %1").arg(m_written)
                          : tr("It failed its check; do not use it: %1").arg(m_written)};
    if (!outcome.ollamaName.empty())
        lines << tr("Ollama has it now: ollama run %1")
                     .arg(QString::fromStdString(outcome.ollamaName));
    if (!outcome.notCreated.empty())
        lines
            << tr("Ollama has no model of it: %1").arg(QString::fromStdString(outcome.notCreated));
    for (const auto* part : {&outcome.faults, &outcome.facts, &outcome.notes})
        for (const std::string& line : *part)
            lines.push_back(QString::fromStdString(line));
    m_verdict->showLines(kindOf(outcome), lines);
    m_suggested = suggestedPlace();
    emit written();
}

void ExportDialog::enable()
{
    const bool isBusy = busy();
    for (QWidget* widget : std::initializer_list<QWidget*>{m_form, m_type, m_place, m_ollama})
        widget->setEnabled(!isBusy);
    m_start->setText(isBusy ? tr("Stop") : tr("Export"));
    m_start->setEnabled(!m_place->text().trimmed().isEmpty() && m_ollama->isComplete());
    m_show->setVisible(!m_written.isEmpty() && !isBusy);
}

} // namespace mr::ui
