/**
 * Puts a question to the person and gives the answer. Where no answer is there yet, the call ends here, the run pauses,
 * and the call starts again from its beginning once the person has answered. So ask the same questions in the same
 * order, before anything that must not happen twice.
 */
export function ask(question: string): string;
