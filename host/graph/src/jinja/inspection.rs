//! What templates may not have: what could make a small text large, which bounds on steps do not see.

use minijinja::machinery::ast::{BinOpKind, CallArg, Expr, Stmt};
use minijinja::machinery::{Token, WhitespaceConfig, tokenize};

/// How often one expression may join texts.
const MAX_JOINS: usize = 8;
/// Words and signs of one tag that may be in each other, and `elif` of one `if` and those around it. What reads and compiles a template goes
/// deeper for each sign, dot and filter in a row and for each `elif`, and itself counts nothing but brackets and blocks in each other.
const MAX_TAG: usize = 500;
const MAX_ELSE_IFS: usize = 100;

/// Refuses a template that would take more stack than a thread has. It is asked before anything reads the template.
pub(super) fn depth(source: &str) -> Result<(), String> {
    let (mut tag, mut is_first_of_block) = (Tag::default(), false);
    // How often each `if` that is open has `elif`, and all of them together.
    let (mut ifs, mut else_ifs): (Vec<usize>, usize) = (Vec::new(), 0);
    // What cannot be read ends the look here, and is an error of whoever reads the template.
    for (token, _) in tokenize(source, false, Default::default(), WhitespaceConfig::default()).map_while(Result::ok) {
        match &token {
            Token::TemplateData(_) | Token::VariableStart | Token::BlockStart => tag = Tag::default(),
            Token::Ident("if") if is_first_of_block => ifs.push(0),
            Token::Ident("endif") if is_first_of_block => else_ifs -= ifs.pop().unwrap_or_default(),
            Token::Ident("elif") if is_first_of_block => {
                if let Some(times) = ifs.last_mut() {
                    *times += 1;
                    else_ifs += 1;
                }
            }
            token => tag.take(token),
        }
        is_first_of_block = matches!(token, Token::BlockStart);
        if tag.depth > MAX_TAG {
            return Err(format!("a tag of the template has more than {MAX_TAG} words and signs"));
        }
        if else_ifs > MAX_ELSE_IFS {
            return Err(format!(
                "an `if` of the template, with those around it, has `elif` more than {MAX_ELSE_IFS} times"
            ));
        }
    }
    Ok(())
}

/// How deep an expression is at most, by its words and signs. Of the items of a list, an object or a call only the longest counts, since they
/// are read one after the other.
#[derive(Default)]
struct Tag {
    depth: usize,
    /// Of each bracket that is open, the words and signs of the item that is read, and of the longest one before it
    brackets: Vec<(usize, usize)>,
}

impl Tag {
    fn take(&mut self, token: &Token<'_>) {
        match token {
            Token::BracketOpen | Token::ParenOpen | Token::BraceOpen => {
                self.add(1);
                self.brackets.push((0, 0));
            }
            Token::BracketClose | Token::ParenClose | Token::BraceClose => {
                let (item, longest) = self.brackets.pop().unwrap_or_default();
                self.depth -= item;
                self.add(item.max(longest));
            }
            Token::Comma => match self.brackets.last_mut() {
                Some((item, longest)) => {
                    self.depth -= *item;
                    *longest = (*longest).max(*item);
                    *item = 0;
                }
                None => self.add(1),
            },
            _ => self.add(1),
        }
    }

    fn add(&mut self, more: usize) {
        self.depth += more;
        if let Some((item, _)) = self.brackets.last_mut() {
            *item += more;
        }
    }
}

/// Looks for what could make a small text large, which bounds on steps do not see.
#[derive(Default)]
pub(super) struct Inspection {
    joins: usize,
}

/// What the values of names are made of may not grow: a name can be used again and again.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Output,
    Binding,
}

impl Inspection {
    fn statements(&mut self, statements: &[Stmt<'_>]) -> Result<(), String> {
        statements.iter().try_for_each(|statement| self.statement(statement))
    }

    pub(super) fn statement(&mut self, statement: &Stmt<'_>) -> Result<(), String> {
        match statement {
            Stmt::Template(template) => self.statements(&template.children),
            Stmt::EmitRaw(_) => Ok(()),
            Stmt::EmitExpr(emit) => self.whole(&emit.expr),
            Stmt::ForLoop(each) if each.recursive => left_out("a recursive loop"),
            Stmt::ForLoop(each) => {
                self.expression(&each.iter, Place::Binding)?;
                each.filter_expr.iter().try_for_each(|expression| self.whole(expression))?;
                self.statements(&each.body)?;
                self.statements(&each.else_body)
            }
            Stmt::IfCond(either) => {
                self.whole(&either.expr)?;
                self.statements(&either.true_body)?;
                self.statements(&either.false_body)
            }
            Stmt::WithBlock(with) => {
                with.assignments.iter().try_for_each(|(_, value)| self.expression(value, Place::Binding))?;
                self.statements(&with.body)
            }
            Stmt::Set(set) => self.expression(&set.expr, Place::Binding),
            Stmt::SetBlock(_) => left_out("`set` of a block"),
            Stmt::AutoEscape(_) => left_out("`autoescape`"),
            Stmt::FilterBlock(_) => left_out("`filter` of a block"),
            _ => left_out("a statement of this kind (`do`, `macro`, `include` and the like)"),
        }
    }

    /// An expression that is not a part of another one.
    fn whole(&mut self, expression: &Expr<'_>) -> Result<(), String> {
        self.joins = 0;
        self.expression(expression, Place::Output)
    }

    fn expressions<'e>(
        &mut self,
        expressions: impl IntoIterator<Item = &'e Expr<'e>>,
        place: Place,
    ) -> Result<(), String> {
        expressions.into_iter().try_for_each(|expression| self.expression(expression, place))
    }

    fn arguments(&mut self, arguments: &[CallArg<'_>], place: Place) -> Result<(), String> {
        arguments.iter().try_for_each(|argument| match argument {
            CallArg::Pos(value) | CallArg::Kwarg(_, value) => self.expression(value, place),
            CallArg::PosSplat(_) | CallArg::KwargSplat(_) => left_out("arguments from a list"),
        })
    }

    fn expression(&mut self, expression: &Expr<'_>, place: Place) -> Result<(), String> {
        match expression {
            // A list of names in a name that is in a list again would stand for a list without end.
            Expr::List(_) | Expr::Map(_) if place == Place::Binding && expression.as_const().is_none() => {
                left_out("a list or object of names where a name gets its value")
            }
            Expr::Var(_) | Expr::Const(_) => Ok(()),
            Expr::Slice(slice) => {
                self.expression(&slice.expr, place)?;
                [&slice.start, &slice.stop, &slice.step]
                    .into_iter()
                    .flatten()
                    .try_for_each(|bound| self.expression(bound, place))
            }
            Expr::UnaryOp(unary) => self.expression(&unary.expr, place),
            Expr::BinOp(binary) => {
                match binary.op {
                    BinOpKind::Mul | BinOpKind::Pow => return left_out("multiplication"),
                    BinOpKind::Add | BinOpKind::Concat if place == Place::Binding => {
                        return left_out("joining or adding where a name gets its value");
                    }
                    BinOpKind::Add | BinOpKind::Concat => self.joins += 1,
                    _ => {}
                }
                if self.joins > MAX_JOINS {
                    return left_out(&format!("joining texts more than {MAX_JOINS} times in one expression"));
                }
                self.expressions([&binary.left, &binary.right], place)
            }
            Expr::Compare(compare) => {
                self.expression(&compare.expr, place)?;
                compare.ops.iter().try_for_each(|one| self.expression(&one.expr, place))
            }
            Expr::IfExpr(either) => {
                self.expressions([&either.test_expr, &either.true_expr], place)?;
                either.false_expr.iter().try_for_each(|expression| self.expression(expression, place))
            }
            Expr::Filter(filter) => {
                filter.expr.iter().try_for_each(|expression| self.expression(expression, place))?;
                self.arguments(&filter.args, place)
            }
            Expr::Test(test) => {
                self.expression(&test.expr, place)?;
                self.arguments(&test.args, place)
            }
            Expr::GetAttr(get) => self.expression(&get.expr, place),
            Expr::GetItem(get) => self.expressions([&get.expr, &get.subscript_expr], place),
            Expr::Call(call) => {
                if !matches!(&call.expr, Expr::Var(name) if name.id == "range") {
                    return left_out("a call of anything but `range`");
                }
                self.arguments(&call.args, place)
            }
            Expr::List(list) => list.items.iter().try_for_each(|item| self.expression(item, place)),
            Expr::Map(map) => map.keys.iter().chain(&map.values).try_for_each(|item| self.expression(item, place)),
        }
    }
}

fn left_out(what: &str) -> Result<(), String> {
    Err(format!("{what} is left out of templates here"))
}
