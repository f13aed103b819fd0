import pad from "left-pad";
console.log(pad);
