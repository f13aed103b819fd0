export { shout, counted } from "./words/index";
