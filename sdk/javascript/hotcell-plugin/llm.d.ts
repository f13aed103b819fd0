export interface Message {
  role: "system" | "user" | "assistant";
  content: string;
}
export interface Options {
  /** `provider:name`; otherwise the run's own. */
  model?: string;
  temperature?: number;
  max_tokens?: number;
}
export interface Request extends Options {
  messages: Message[];
  /** A JSON schema the answer has to fit. */
  schema?: object;
}
export interface Reply {
  text: string;
  model: string;
  usage: { input_tokens: number; output_tokens: number };
  /** The answer as a value, where the request had a `schema`. */
  value?: any;
}
/** Asks the model once and gives the text of its reply. */
export function complete(prompt: string, options?: Options & { system?: string }): string;
/** Sends a whole request. */
export function send(request: Request): Reply;
