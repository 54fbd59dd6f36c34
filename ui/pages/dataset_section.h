// DatasetSection: the training file of a new run, how its columns are read, and its first rows as
// tokens with the trained ones marked.

#pragma once

#include "bridge/background.h"
#include "bridge/ui_services.h"
#include "widgets/card.h"

#include <QTimer>
#include <QWidget>

#include <optional>

class QCheckBox;
class QLabel;
class QPushButton;
class QScrollArea;

namespace mr::ui {

class ColumnForm;
class Legend;
class MessageLabel;
class PathEdit;
class ReadingChoice;
class TemplateChoice;
class TokenPreview;

class DatasetSection final : public QWidget
{
    Q_OBJECT

public:
    explicit DatasetSection(const UiServices& services, QWidget* parent = nullptr);

    QString path() const;
    void setPath(const QString& path);
    QString evalPath() const;
    void setEvalPath(const QString& path);
    DataSource source() const; // with the columns chosen
    void setSource(const DataSource& source);
    // Short sequences share rows of micro-batches.
    bool pack() const;
    void setPack(bool pack);
    // Rows of micro-batches in an epoch; 0: not known.
    std::int64_t batchRows() const;
    // Both decide how rows become tokens; a change inspects the file again.
    void setModel(const QString& modelDir, std::int64_t seqLen);

    const std::optional<DatasetInfo>& info() const { return m_info; }
    // Nothing is being looked at, nor about to be.
    bool settled() const { return !m_delay.isActive() && !m_question.busy(); }
    MessageLabel* message() const { return m_message; }
    MessageLabel* packMessage() const { return m_packMessage; }
    MessageLabel* evalMessage() const { return m_evalMessage; }
    PathEdit* pathEdit() const { return m_path; }
    TokenPreview* preview() const { return m_preview; }
    ColumnForm* columnForm() const { return m_form; }
    ReadingChoice* readings() const { return m_readings; }
    QCheckBox* skip() const { return m_skip; }
    QPushButton* checkButton() const { return m_check; }
    TemplateChoice* templateChoice() const { return m_template; }

signals:
    void changed();

protected:
    void changeEvent(QEvent* event) override;

private:
    void build();
    void inspect();
    void show(const Result<DatasetInfo>& result);
    void showInfo();
    void showForm();
    bool showWayOut();
    QString wayOut() const;
    void setSkip(bool skip);
    void checkRows();
    void exclude(const RowList& rows, quint64 fileBytes);
    void takeColumns();
    void takeTemplate(const QString& choice);
    void showPacking();
    void clearPreview();
    QString summary(const DatasetInfo& info) const;
    void checkEvalPath();
    void retranslateUi();

    UiServices m_services;
    std::string m_modelDir;
    std::int64_t m_seqLen = 0;
    DataFormat m_format = DataFormat::Auto;
    // Chosen by the user, with the keys that are no columns (DataSource::columns); empty: by name.
    std::map<std::string, std::string> m_columns;
    RowList m_excluded;
    std::uint64_t m_excludedOf = 0; // bytes of the file in which they were chosen

    Card* m_card;
    QLabel* m_label;
    PathEdit* m_path;
    MessageLabel* m_message;
    QCheckBox* m_skip;
    ReadingChoice* m_readings;
    TemplateChoice* m_template;
    ColumnForm* m_form;
    QLabel* m_previewTitle;
    Legend* m_legend;
    QScrollArea* m_previewArea;
    TokenPreview* m_preview;
    QPushButton* m_check;
    QCheckBox* m_pack;
    MessageLabel* m_packMessage;
    QLabel* m_evalLabel;
    PathEdit* m_evalPath;
    MessageLabel* m_evalMessage;
    QTimer m_delay;
    LatestOnly<Result<DatasetInfo>> m_question;
    std::optional<DatasetInfo> m_info;
};

} // namespace mr::ui
