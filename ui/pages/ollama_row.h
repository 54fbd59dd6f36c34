// OllamaRow: whether the Ollama of this PC makes a model of an export, and by which name.
//
// Off until the user says so, as a connection with that server is opened then.
//
// Threads  GUI.

#pragma once

#include <QWidget>

class QCheckBox;
class QLineEdit;

namespace mr::ui {

class OllamaRow final : public QWidget
{
    Q_OBJECT

public:
    // The name that is proposed is `name` in small letters, as far as Ollama takes them.
    explicit OllamaRow(const QString& name, QWidget* parent = nullptr);

    QString modelName() const; // empty: Ollama is not asked
    bool isComplete() const;   // false: the name is missing
    QCheckBox* choice() const { return m_choice; }
    QLineEdit* name() const { return m_name; }

signals:
    void changed();

private:
    QCheckBox* m_choice;
    QLineEdit* m_name;
};

} // namespace mr::ui
